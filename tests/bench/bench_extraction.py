"""How fast PDF pages are read, beside bare PDFium and pdfplumber: `python -m tests.bench.bench_extraction`.

Prints a table and, as its last line, one JSON object. Everything runs in turns in one process, the best of three rounds
counts, and pages per second are compared on the same pages. "Text" is what every page costs: text, reading order,
hidden text, the look whether it needs OCR, and whether it has tables; "complete" reads the tables, too. OCR is left
out. The memory figures come from processes of their own that read 100 and 1,000 pages.
"""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pypdfium2
import pytest
from reportlab.pdfgen import canvas

from functions.core import errors, ocr, pdf_extraction, pdf_tables, pdf_visibility
from tests import requirements

ROUNDS = 3
PAGES_OF_A_FILE = 30
SAMPLE_STEP = 20
PLUMBER_GOAL, BARE_GOAL, MEMORY_GOAL = 10.0, 0.4, 1.3

Work = Sequence[tuple[Path, Sequence[int]]]
"""Files and the numbers of the pages to read, from 1."""


class _HasTables(Exception):
    """Raised where the table finder asks for more than its cheap signs."""


def find_work(folder: Path) -> tuple[str, Work]:
    """The question sets and the corpus where they are, else a file made for the purpose."""
    paths: list[Path] = []
    for need, names in (
        (requirements.need_eval_data, ("pages_en", "pages_fr")),
        (requirements.need_corpus, ("files",)),
    ):
        for name in names:
            with suppress(pytest.skip.Exception, pytest.fail.Exception):
                paths += sorted(need(name).glob("*/*.pdf" if name == "files" else "pdf/*.pdf"))
    work = [(path, numbers) for path in paths if (numbers := readable_pages(path))]
    if work:
        return f"{len(work)} files of the question sets and the corpus", work
    path = folder / "made.pdf"
    write_pdf(path, 200)
    return "NO DATA FOLDERS: 200 pages made for the purpose", [(path, range(1, 201))]


def readable_pages(path: Path) -> range:
    try:
        with pdf_extraction.PdfPages(path, max_pages=100_000) as document:
            return range(1, min(document.page_count, PAGES_OF_A_FILE) + 1)
    except errors.IbidError:
        return range(0)


def write_pdf(path: Path, pages: int) -> None:
    chance = random.Random(5)
    words = "river bridge market winter letter garden window council harbour village engine".split()  # noqa: SIM905
    pdf = canvas.Canvas(str(path), invariant=1)
    for number in range(pages):
        pdf.drawString(72, 800, f"Page {number}")
        for line in range(50):
            pdf.drawString(72, 770 - 14 * line, " ".join(chance.choices(words, k=12)))
        pdf.showPage()
    pdf.save()


def read_bare(path: Path, numbers: Sequence[int]) -> None:
    with pypdfium2.PdfDocument(path) as pdf:
        for number in numbers:
            page = pdf[number - 1]
            with suppress(pypdfium2.PdfiumError):
                page.get_textpage().get_text_range()
            page.close()


def read_text(path: Path, numbers: Sequence[int]) -> None:
    def ask() -> Sequence[int | None]:
        raise _HasTables

    with pdf_extraction.open_pdf(path) as pdf:
        for number in numbers:
            with (
                suppress(errors.CorruptDocumentError),
                pdf_extraction.open_text_page(pdf, number) as (page, text_page),
            ):
                layer = pdf_extraction.read_layer(text_page)
                ocr.needs_recognition(layer.text, page)
                pdf_visibility.find_hidden(
                    page,
                    text_page,
                    layer.text,
                    lambda layer=layer, text_page=text_page: layer.indices(text_page),
                    layer.runs,
                )
                with suppress(_HasTables):
                    pdf_tables.find_tables(page, text_page, layer.text, ask)


def read_complete(path: Path, numbers: Sequence[int]) -> None:
    with pdf_extraction.PdfPages(path, max_pages=100_000) as document:
        for number in numbers:
            next(document.pages(number))


def read_plumber(path: Path, numbers: Sequence[int]) -> None:
    import pdfplumber

    with pdfplumber.open(path) as pdf:
        for number in numbers:
            pdf.pages[number - 1].extract_text()
            pdf.pages[number - 1].close()


def seconds_of(read: Callable[[Path, Sequence[int]], None], work: Work) -> float:
    start = time.perf_counter()
    for path, numbers in work:
        read(path, numbers)
    return time.perf_counter() - start


def measure_speed(work: Work) -> list[dict[str, Any]]:
    total = sum(len(numbers) for _, numbers in work)
    sample = [(path, numbers[::SAMPLE_STEP]) for path, numbers in work if path.parent.name == "pdf"] or [
        (path, numbers[::SAMPLE_STEP]) for path, numbers in work
    ]
    sampled = sum(len(numbers) for _, numbers in sample)
    best: dict[str, float] = {}
    for _ in range(ROUNDS):
        for name, read, part in (
            ("bare", read_bare, work),
            ("text", read_text, work),
            ("complete", read_complete, work),
            ("plumber", read_plumber, sample),
            ("sampled text", read_text, sample),
            ("sampled complete", read_complete, sample),
        ):
            best[name] = min(best.get(name, float("inf")), seconds_of(read, part))
    bare, plumber = total / best["bare"], sampled / best["plumber"]
    text, complete = total / best["text"], total / best["complete"]
    sampled_text, sampled_complete = sampled / best["sampled text"], sampled / best["sampled complete"]
    return [
        figure("text pages/s, beside bare PDFium", text, bare, BARE_GOAL, text / bare >= BARE_GOAL),
        figure("complete pages/s, beside bare PDFium", complete, bare, None, True),
        figure(
            "text pages/s, beside pdfplumber",
            sampled_text,
            plumber,
            PLUMBER_GOAL,
            sampled_text / plumber >= PLUMBER_GOAL,
        ),
        figure("complete pages/s, beside pdfplumber", sampled_complete, plumber, None, True),
    ]


def measure_memory(folder: Path) -> dict[str, Any]:
    peaks = []
    for pages in (100, 1000):
        write_pdf(folder / "pages.pdf", pages)
        command = [sys.executable, "-m", "tests.bench.bench_extraction", str(folder / "pages.pdf")]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        peaks.append(float(done.stdout))
    return figure(
        "peak MB of 1,000 pages, beside 100", peaks[1], peaks[0], MEMORY_GOAL, peaks[1] <= MEMORY_GOAL * peaks[0]
    )


def figure(name: str, value: float, baseline: float, goal: float | None, ok: bool) -> dict[str, Any]:
    """`goal` is of the ratio value / baseline; None where a figure is only reported."""
    return {
        "figure": name,
        "value": round(value, 1),
        "baseline": round(baseline, 1),
        "ratio": round(value / baseline, 3),
        "goal": goal,
        "ok": bool(ok),
    }


def main() -> None:
    if len(sys.argv) > 1:  # a process of its own, whose peak is measured
        with pdf_extraction.PdfPages(Path(sys.argv[1]), max_pages=100_000) as document:
            for _ in document.pages():
                pass
        unit = 2**20 if sys.platform == "darwin" else 2**10
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit)
        return
    with tempfile.TemporaryDirectory() as name:
        said, work = find_work(Path(name))
        print(f"{said}; {sum(len(numbers) for _, numbers in work)} pages, {os.cpu_count()} CPUs")
        figures = [*measure_speed(work), measure_memory(Path(name))]
    print(f"{'figure':40} {'value':>10} {'baseline':>10} {'ratio':>7} {'goal':>5}  ok")
    for row in figures:
        goal = "" if row["goal"] is None else row["goal"]
        print(f"{row['figure']:40} {row['value']:10} {row['baseline']:10} {row['ratio']:7} {goal:>5}  {row['ok']}")
    print(json.dumps({"name": "extraction", "figures": figures}))


if __name__ == "__main__":
    main()
