"""Compares the speed of reading PDF pages with PDFium and pdfplumber: `python -m tests.bench.bench_extraction`.

Figures are pages per second of processor time. The readers take turns, and the best of three rounds counts for each
file. The baseline on the same pages is bare PDFium (pypdfium2's `get_text_range`, pages closed) or pdfplumber's
`extract_text`. "Complete" is everything except OCR. "Text" is the same without reading tables: text, reading order,
hidden text, the decision whether a page needs OCR and, on pages without tables, the search for them. Memory is measured
in new processes that read 100 and 1,000 pages. Prints a table and, as the last line, a JSON object.
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
FILE_PAGES = 30
SAMPLE_STEP = 20
PLUMBER_GOAL, BARE_GOAL, MEMORY_GOAL = 10.0, 0.4, 1.3

Work = Sequence[tuple[Path, Sequence[int]]]
"""Files, and the numbers of the pages to read, from 1."""
Read = Callable[[Path, Sequence[int]], None]


def find_work(folder: Path) -> dict[str, Work]:
    """Finds the PDF files of the question sets and the corpus; without either, generates one."""
    sets: dict[str, Work] = {}
    with suppress(pytest.skip.Exception, pytest.fail.Exception):
        root = requirements.need_eval_data()
        sets["question sets"] = list_work(sorted(root.glob("pages_*/pdf/*.pdf")))
    with suppress(pytest.skip.Exception, pytest.fail.Exception):
        sets["corpus"] = list_work(sorted(requirements.need_corpus("files").glob("*/*.pdf")))
    if not sets:
        print("THE QUESTION SETS AND THE CORPUS ARE MISSING: 200 generated pages are read instead")
        write_pdf(folder / "generated.pdf", 200)
        sets["generated"] = [(folder / "generated.pdf", range(1, 201))]
    return sets


def list_work(paths: Sequence[Path]) -> Work:
    return [(path, numbers) for path in paths if (numbers := list_readable_pages(path))]


def list_readable_pages(path: Path) -> range:
    try:
        with PdfPages(path, max_pages=100_000) as document:
            return range(1, min(document.page_count, FILE_PAGES) + 1)
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
                read_page_text(pdf, number, has_tables=number in list_pages_with_tables(path))


def read_page_text(pdf: pypdfium2.PdfDocument, number: int, *, has_tables: bool) -> None:
    with open_text_page(pdf, number) as (page, text_page):
        layer = read_layer(text_page)
        indices = functools.cache(lambda: layer.indices(text_page))
        ocr.needs_recognition(layer.text, page)
        hidden_text.find_hidden(page, text_page, layer.text, indices, layer.runs)
        if not has_tables:
            finder.find_tables(page, text_page, layer.text, indices, layer.runs)


@functools.cache
def list_pages_with_tables(path: Path) -> frozenset[int]:
    with PdfPages(path, max_pages=100_000) as document:
        return frozenset(page.number for page in itertools.islice(document.pages(), FILE_PAGES) if page.tables)


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


def measure_seconds(read: Read, path: Path, numbers: Sequence[int]) -> float:
    """Measures processor time, because other processes must not count and every reader runs in one thread."""
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
                seconds = measure_seconds(read, path, numbers)
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
    """Prints the peak memory of this process in MB after it has read a whole file."""
    with PdfPages(path, max_pages=100_000) as document:
        for _ in document.pages():
            pass
    # getrusage may report the peak of the parent process.
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
            with_tables = sum(len(list_pages_with_tables(path)) for path, _ in work)
            print(f"{name}: {pages} pages of {len(work)} files, {with_tables} with tables")
        print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
        figures = [*measure_speed(sets), measure_memory(Path(folder))]
    print_figures("extraction", figures)


if __name__ == "__main__":
    main()
