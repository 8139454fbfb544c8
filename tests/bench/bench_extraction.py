"""The speed of reading PDF pages, compared with bare PDFium and pdfplumber: `python -m tests.bench.bench_extraction`.

Prints a table and, as its last line, one JSON object. Figures are pages per second of one processor, read in turns,
each file in the best of three rounds; the baseline is bare PDFium (pypdfium2's `get_text_range`, pages closed) or
pdfplumber's `extract_text`, on the same pages. "Complete" is everything except OCR; "text" also leaves out reading
tables: it is text, reading order, hidden text, whether a page needs OCR and, on pages that have no tables, the search
for them. The memory figures are from separate processes that read 100 and 1,000 pages.
"""

from __future__ import annotations

import functools
import itertools
import os
import random
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

from functions.core import errors
from functions.core.extraction import ocr
from functions.core.extraction.pdf import hidden_text
from functions.core.extraction.pdf.reader import PdfPages, open_pdf, open_text_page, read_layer
from functions.core.extraction.pdf.tables import finder
from tests.bench.report import at_most, figure, print_figures
from tests.support import requirements

ROUNDS = 3
PAGES_OF_A_FILE = 30
SAMPLE_STEP = 20
PLUMBER_GOAL, BARE_GOAL, MEMORY_GOAL = 10.0, 0.4, 1.3

Work = Sequence[tuple[Path, Sequence[int]]]
"""Files and the numbers of the pages to read, from 1."""
Read = Callable[[Path, Sequence[int]], None]


def find_work(folder: Path) -> dict[str, Work]:
    """The question sets and the corpus if they exist, otherwise a generated file."""
    sets: dict[str, Work] = {}
    with suppress(pytest.skip.Exception, pytest.fail.Exception):
        root = requirements.need_eval_data()
        sets["question sets"] = open_all(sorted(root.glob("pages_*/pdf/*.pdf")))
    with suppress(pytest.skip.Exception, pytest.fail.Exception):
        sets["corpus"] = open_all(sorted(requirements.need_corpus("files").glob("*/*.pdf")))
    if not sets:
        print("THE QUESTION SETS AND THE CORPUS ARE MISSING: 200 generated pages are read instead")
        write_pdf(folder / "made.pdf", 200)
        sets["made"] = [(folder / "made.pdf", range(1, 201))]
    return sets


def open_all(paths: Sequence[Path]) -> Work:
    return [(path, numbers) for path in paths if (numbers := readable_pages(path))]


def readable_pages(path: Path) -> range:
    try:
        with PdfPages(path, max_pages=100_000) as document:
            return range(1, min(document.page_count, PAGES_OF_A_FILE) + 1)
    except errors.IbidError:
        return range(0)


def write_pdf(path: Path, pages: int) -> None:
    chance = random.Random(5)
    pdf = canvas.Canvas(str(path), invariant=1)
    for number in range(pages):
        pdf.drawString(72, 800, f"Page {number}")
        for line in range(50):
            pdf.drawString(72, 770 - 14 * line, " ".join(f"word{chance.randrange(999)}" for _ in range(10)))
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
    with open_pdf(path) as pdf:
        for number in numbers:
            with suppress(errors.CorruptDocumentError):
                read_page_text(pdf, number, has_tables=number in numbers_with_tables(path))


def read_page_text(pdf: pypdfium2.PdfDocument, number: int, *, has_tables: bool) -> None:
    with open_text_page(pdf, number) as (page, text_page):
        layer = read_layer(text_page)
        indices = functools.cache(lambda: layer.indices(text_page))
        ocr.needs_recognition(layer.text, page)
        hidden_text.find_hidden(page, text_page, layer.text, indices, layer.runs)
        if not has_tables:
            finder.find_tables(page, text_page, layer.text, indices, layer.runs)


@functools.cache
def numbers_with_tables(path: Path) -> frozenset[int]:
    with PdfPages(path, max_pages=100_000) as document:
        return frozenset(page.number for page in itertools.islice(document.pages(), PAGES_OF_A_FILE) if page.tables)


def read_complete(path: Path, numbers: Sequence[int]) -> None:
    with PdfPages(path, max_pages=100_000) as document:
        for number in numbers:
            next(document.pages(number))


def read_plumber(path: Path, numbers: Sequence[int]) -> None:
    import pdfplumber

    with pdfplumber.open(path) as pdf:
        for number in numbers:
            pdf.pages[number - 1].extract_text()
            pdf.pages[number - 1].close()


def seconds_of(read: Read, path: Path, numbers: Sequence[int]) -> float:
    """Processor seconds: everything here runs in one thread, and other processes must not count."""
    start = time.process_time()
    read(path, numbers)
    return time.process_time() - start


def measure_speed(sets: dict[str, Work]) -> list[dict[str, Any]]:
    works = dict(sets)
    works["sample"] = [(path, numbers[::SAMPLE_STEP]) for path, numbers in next(iter(sets.values()))]
    readers: dict[str, Read] = {"bare": read_bare, "text": read_text, "complete": read_complete}
    runs = [(reader, read, name) for name in works for reader, read in readers.items()]
    best: dict[tuple[str, str, Path], float] = {}
    for _ in range(ROUNDS):
        for reader, read, name in [*runs, ("pdfplumber", read_plumber, "sample")]:
            for path, numbers in works[name]:
                seconds = seconds_of(read, path, numbers)
                best[reader, name, path] = min(seconds, best.get((reader, name, path), seconds))

    def rate(reader: str, names: Sequence[str]) -> float:
        pages = sum(len(numbers) for name in names for _, numbers in works[name])
        return pages / sum(best[reader, name, path] for name in names for path, _ in works[name])

    rows = []
    for names in [*([name] for name in sets), list(sets)] if len(sets) > 1 else [list(sets)]:
        label = " and ".join(names)
        rows.append(figure(f"text, {label}", rate("text", names), rate("bare", names), BARE_GOAL))
        rows.append(figure(f"complete, {label}", rate("complete", names), rate("bare", names)))
    plumber = rate("pdfplumber", ["sample"])
    rows.append(figure("text, beside pdfplumber", rate("text", ["sample"]), plumber, PLUMBER_GOAL))
    rows.append(figure("complete, beside pdfplumber", rate("complete", ["sample"]), plumber))
    return rows


def measure_memory(folder: Path) -> dict[str, Any]:
    peaks = []
    for pages in (100, 1000):
        write_pdf(folder / "pages.pdf", pages)
        command = [sys.executable, "-m", "tests.bench.bench_extraction", str(folder / "pages.pdf")]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        peaks.append(float(done.stdout))
    return at_most("peak MB of 1,000 pages, beside 100", peaks[1], peaks[0], MEMORY_GOAL)


def print_peak(path: Path) -> None:
    """The peak of this process's memory in MB after reading all of a file."""
    with PdfPages(path, max_pages=100_000) as document:
        for _ in document.pages():
            pass
    # getrusage may report the peak of the process that started this one.
    peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:"))
    print(int(peak.split()[1]) / 2**10)


def main() -> None:
    if len(sys.argv) > 1:
        print_peak(Path(sys.argv[1]))
        return
    with tempfile.TemporaryDirectory() as folder:
        sets = find_work(Path(folder))
        for name, work in sets.items():
            pages = sum(len(numbers) for _, numbers in work)
            with_tables = sum(len(numbers_with_tables(path)) for path, _ in work)
            print(f"{name}: {pages} pages of {len(work)} files, {with_tables} with tables")
        print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
        figures = [*measure_speed(sets), measure_memory(Path(folder))]
    print_figures("extraction", figures)


if __name__ == "__main__":
    main()
