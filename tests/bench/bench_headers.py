"""Measures whether tables keep their column heads, unit and caption: `python -m tests.bench.bench_headers`.

`table_heads.jsonl` says, from the look of each page, how many header rows a real table has, its first row below
them, its caption and units, and titles of groups of rows, each with a cell of the group's last row. Its files are in
IBID_EVAL_DATA or IBID_CORPUS_DATA. Financial statements are generated. Each document is read and cut into passages as
ingestion does. Prints what is wrong, a table of figures and, as the last line, a JSON object.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from functions.core import models
from functions.core.extraction.documents import open_document
from functions.core.ingestion.batch_chunks import chunk_batch
from functions.core.ingestion.chunking import page_layout
from functions.core.ingestion.chunking.passages import ChunkSettings
from functions.core.ingestion.jobs import Checkpoint
from functions.core.ingestion.outline import OPENING_PAGES, describe_document
from functions.local.evaluation import question_sets
from tests.bench.report import figure, print_figures
from tests.corpus import manifest
from tests.support import statements
from tests.support.requirements import report_missing

STATEMENTS, FIRST_SEED = 100, 40_000  # the rules were written with statements of seeds below 1,000 at hand
GOALS = {"header rows": 0.95, "units": 0.95, "captions": 0.95, "passages": 1.0, "data rows": 1.0, "groups": 0.95}
_TOKEN = re.compile(r"\w{1,5}|[^\w\s]")


@dataclass(frozen=True)
class KnownTable:
    """What a reader sees at a table; `heads` are the names of its columns, `groups` titles with their last row."""

    page: int
    header_rows: int
    first: tuple[str, ...]
    caption: str = ""
    units: tuple[str, ...] = ()
    groups: dict[str, str] = field(default_factory=dict)
    heads: tuple[str, ...] = ()
    pages: int = 1


@dataclass
class Tally:
    """How many were right of how many, and a line about each that was wrong."""

    right: int = 0
    count: int = 0
    wrong: list[str] = field(default_factory=list)

    def add(self, is_right: bool, name: str) -> None:
        self.count += 1
        self.right += is_right
        if not is_right:
            self.wrong.append(name)

    def join(self, other: Tally) -> None:
        self.right, self.count, self.wrong = (
            self.right + other.right,
            self.count + other.count,
            self.wrong + other.wrong,
        )

    @property
    def share(self) -> float:
        return self.right / self.count if self.count else 1.0


Tallies = dict[str, Tally]


def make_tallies() -> Tallies:
    return {name: Tally() for name in ("header rows", "data rows", "captions", "units", "passages", "groups")}


def count_tokens(text: str) -> int:
    return len(_TOKEN.findall(text))


def read_document(path: Path) -> tuple[list[models.Page], list[tuple[models.Chunk, ...]]]:
    """The pages of a document, and the passages of each."""
    with open_document(path, "pdf", max_pages=1_000) as document:
        pages = list(document.pages())
        outline = describe_document(document, pages[:OPENING_PAGES], path.name)
    batch = chunk_batch(pages, Checkpoint(outline=outline), ChunkSettings(), count_tokens)
    return pages, list(batch.by_page)


def find_table(page: models.Page, first: Sequence[str], taken: set[int]) -> tuple[models.Table, int] | None:
    """The table with this row, which is not `taken` yet, and the row's number; of several the one with it on top."""
    wanted = "".join(map(plain, first))
    found = [
        (number, table)
        for table in page.tables
        if table.start not in taken
        for number, row in enumerate(table.rows)
        if "".join(map(plain, row.cells)).startswith(wanted)
    ]
    if not found:
        return None
    number, table = min(found, key=lambda item: (item[0], item[1].start))
    taken.add(table.start)
    return table, number


def holds_rows(chunk: models.Chunk, table: models.Table) -> bool:
    """Whether most rows of a passage are of this table; tables side by side cover the same stretch of text."""
    if not chunk.markdown or chunk.start_offset >= table.end or table.start >= chunk.end_offset:
        return False
    own = {"".join(map(plain, row.cells)) for row in table.rows}
    rows = [plain(line) for line in chunk.markdown.splitlines() if plain(line)]
    return 2 * sum(row in own for row in rows) >= len(rows)


def plain(text: str) -> str:
    """A text without spaces and signs, which captions and cells are compared by."""
    return re.sub(r"[\W_]+", "", text).casefold()


def without_spaces(text: str) -> str:
    return "".join(text.split()).casefold()


def score_document(name: str, path: Path, known: Sequence[KnownTable], tallies: Tallies) -> None:
    pages, passages = read_document(path)
    taken: dict[int, set[int]] = {}
    for table in known:
        label = f"{name} page {table.page}, {table.first[0][:30]!r}"
        found = find_table(pages[table.page - 1], table.first, taken.setdefault(table.page, set()))
        own = [chunk for chunk in passages[table.page - 1] if found and holds_rows(chunk, found[0])]
        further = [chunk for page in passages[table.page : table.page + table.pages - 1] for chunk in page]
        score_table(label, table, found, [*own, *(chunk for chunk in further if chunk.markdown)], tallies)


def score_table(
    label: str,
    known: KnownTable,
    found: tuple[models.Table, int] | None,
    passages: Sequence[models.Chunk],
    tallies: Tallies,
) -> None:
    header_rows, first = (page_layout.count_header_rows(found[0]), found[1]) if found else (-1, -1)
    is_right = header_rows == first == known.header_rows
    tallies["header rows"].add(
        is_right, f"{label}: {header_rows} header rows, first row {first}, of {known.header_rows}"
    )
    tallies["data rows"].add(not found or header_rows <= first, f"{label}: a row of data is a header")
    texts = [chunk.search_text for chunk in passages] or [""]
    if known.caption:
        missing = sum(plain(known.caption) not in plain(text) for text in texts)
        tallies["captions"].add(not missing, f"{label}: {missing} of {len(texts)} without {known.caption!r}")
    if known.units:
        missing = sum(any(without_spaces(unit) not in without_spaces(text) for unit in known.units) for text in texts)
        tallies["units"].add(not missing, f"{label}: {missing} of {len(texts)} without {known.units}")
    for text in texts:
        lost = [head for head in (*known.heads, *known.units) if plain(head) not in plain(text)]
        tallies["passages"].add(not lost, f"{label}: a passage without {lost}")
    for title, last in known.groups.items():
        own = [text for text in texts if plain(last) in plain(text)]
        tallies["groups"].add(any(plain(title) in plain(text) for text in own), f"{label}: {last!r} without {title!r}")


def read_gold(path: Path) -> Iterator[tuple[str, KnownTable]]:
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        known: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}
        yield known.pop("file"), KnownTable(**known)


def read_heads(path: Path, known: KnownTable) -> tuple[str, ...]:
    """The names of the columns, from the competition's description of the tables of a file, if there is one."""
    structure = path.with_name(f"{path.stem}-str.xml")
    if not structure.exists():
        return ()
    for region in ElementTree.parse(structure).getroot().iterfind(".//table/region"):
        cells = [(int(cell.get("start-row", "0")), cell.findtext("content") or "") for cell in region.iter("cell")]
        below = "".join(plain(text) for row, text in cells if row == known.header_rows)
        if int(region.get("page", "0")) == known.page and below.startswith("".join(map(plain, known.first))):
            return tuple(text for row, text in cells if row < known.header_rows and plain(text))
    return ()


def measure_real(tallies: Tallies) -> None:
    files: dict[str, list[KnownTable]] = {}
    for name, table in read_gold(Path(__file__).with_name("table_heads.jsonl")):
        files.setdefault(name, []).append(table)
    roots = (question_sets.data_root(), manifest.data_root() / "files")
    for name, tables in files.items():
        path = next((root / name for root in roots if (root / name).exists()), None)
        if path is None:
            report_missing(f"IBID_EVAL_DATA, IBID_CORPUS_DATA: no {name}, so its tables were not measured")
            continue
        score_document(name, path, [replace(table, heads=read_heads(path, table)) for table in tables], tallies)


def measure_statements(tallies: Tallies) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(FIRST_SEED, FIRST_SEED + STATEMENTS):
            for name, tally in measure_statement(Path(folder) / f"{seed}.pdf", seed).items():
                tallies[name].join(tally)


def measure_statement(path: Path, seed: int) -> Tallies:
    """Draws a statement at `path`, and compares what is read with what was drawn."""
    made, tallies = statements.make_statement_pdf(path, seed), make_tallies()
    known = KnownTable(1, made.header_rows, made.first, made.title, (made.unit,), made.groups, made.heads, made.pages)
    score_document(path.name, path, [known], tallies)
    return tallies


def list_figures(kind: str, tallies: Tallies) -> Iterator[dict[str, Any]]:
    for name, tally in tallies.items():
        for line in tally.wrong:
            print(f"{kind}, {name}: {line}")
        is_good = tally.share >= GOALS[name]
        yield figure(f"{name}, {kind}, n = {tally.count}", tally.share, 1.0, GOALS[name], ok=is_good)


def main() -> None:
    figures: list[dict[str, Any]] = []
    for kind, measure in (("real", measure_real), ("statements", measure_statements)):
        tallies = make_tallies()
        measure(tallies)
        figures += list_figures(kind, tallies)
    print_figures("headers", figures)


if __name__ == "__main__":
    main()
