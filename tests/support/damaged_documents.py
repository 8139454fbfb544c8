"""Damages the lines of a text as bad files and bad readers do."""

from __future__ import annotations

import random
import re
import string
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from functions.core.extraction.pdf.reader import open_pdf
from tests.support.documents import make_pdf

LINES = 38
"""As many lines fit on a page of `make_pdf`."""
WIDE = (1600.0, 792.0)
"""Points: wide enough for two lines of a book next to each other."""

_WORD = re.compile(r"[^\W\d_]+")
_LOOKALIKES = {"l": "1", "i": "l", "o": "0", "e": "c", "m": "rn", "n": "ri", "a": "o", "t": "f", "h": "b", "u": "ii"}

Lines = Sequence[str]


def map_letters_wrongly(lines: Lines, rng: random.Random) -> Lines:
    """Each letter is always another one, as with a broken ToUnicode table."""
    small = string.ascii_lowercase
    mixed = "".join(rng.sample(small, len(small)))
    return [line.translate(str.maketrans(small + small.upper(), mixed + mixed.upper())) for line in lines]


def shuffle_glyphs(lines: Lines, rng: random.Random) -> Lines:
    """The letters of each word are in any order."""
    return [_WORD.sub(lambda found: "".join(rng.sample(found[0], len(found[0]))), line) for line in lines]


def misread(lines: Lines, rng: random.Random) -> Lines:
    """One letter in five is misread, as in the text layer of a bad scan."""

    def read(letter: str) -> str:
        if not letter.isalpha() or rng.random() > 0.2:
            return letter
        return rng.choice([_LOOKALIKES.get(letter, letter), "", rng.choice(string.ascii_lowercase)])

    return ["".join(map(read, line)) for line in lines]


def lose_spaces(lines: Lines, rng: random.Random) -> Lines:
    """Words run together."""
    return [line.replace(" ", "") for line in lines]


def interleave_columns(lines: Lines, rng: random.Random) -> Lines:
    """Each line of a left column is followed by one of the right column."""
    half = len(lines) // 2
    return [line for pair in zip(lines[:half], lines[half:], strict=False) for line in pair]


def run_columns_together(lines: Lines, rng: random.Random) -> Lines:
    """Each line of a left column continues with one of the right column."""
    half = len(lines) // 2
    return [f"{left} {right}" for left, right in zip(lines[:half], lines[half:], strict=False)]


def lose_hyphens(lines: Lines, rng: random.Random) -> Lines:
    """Long words at the ends of lines are divided without a hyphen."""
    divided, rest = [], ""
    for line in lines:
        before, _, last = f"{rest}{line}".rpartition(" ")
        cut = len(last) // 2 if len(last) >= 7 and last.isalpha() else len(last)
        divided.append(f"{before} {last[:cut]}")
        rest = f"{last[cut:]} " if last[cut:] else ""
    return divided


DAMAGES: Final[Mapping[str, Callable[[Lines, random.Random], Lines]]] = {
    "letters mapped wrongly": map_letters_wrongly,
    "glyphs in any order": shuffle_glyphs,
    "misread": misread,
    "without spaces": lose_spaces,
    "columns interleaved": interleave_columns,
    "columns run together": run_columns_together,
    "hyphens lost": lose_hyphens,
}


def make_lines_pdf(path: Path, lines: Lines, *, blank_pages: int = 0) -> Path:
    """A PDF with as many pages as the lines need, and blank ones after them."""
    pages = [lines[start : start + LINES] for start in range(0, len(lines), LINES)]
    return make_pdf(path, *pages, *[""] * blank_pages, size=WIDE)


def make_scan_pdf(path: Path, lines: Lines, *, dpi: int) -> Path:
    """A picture of one page of lines; 200 dpi are a good scan, 45 dpi one that is hard to read."""
    drawn = make_pdf(path, lines[:LINES])
    with open_pdf(drawn) as pdf:
        picture = pdf[0].render(scale=dpi / 72).to_pil().convert("L")
    picture.save(path, "PDF", resolution=dpi)
    return path


PROSE: Final = {
    "en": """
        The harbour of the old town was closed to large ships in the spring of 1962, because the sand that the river
        carries had filled the entrance. Fishermen kept using the inner basin, which is deep enough for their boats at
        every tide. Ten years later, the council bought the empty warehouses along the quay and let them to carpenters,
        sail makers and a school for young sailors. When the first regatta took place, more than four thousand visitors
        came, and the only hotel had to put beds in its dining room. Since then, the harbour has earned more from guests
        than it ever did from trade. The sand is still a problem: every second winter a dredger removes about twelve
        thousand cubic metres, and the state pays half of the costs. Some engineers would prefer a longer breakwater on
        the western side, which would turn the current away from the entrance. Others fear that the beaches in the
        east would lose their sand, as they did after the first breakwater had been built. A decision is expected before
        the end of next year, when the contract with the owner of the dredger runs out. Until then, the depth of the
        entrance is measured every month, and the results are printed in the local newspaper.""",
    "fr": """
        Le port de la vieille ville a été fermé aux grands navires au printemps de 1962, parce que le sable que charrie
        la rivière avait comblé son entrée. Les pêcheurs ont continué à utiliser le bassin intérieur, qui reste assez
        profond pour leurs bateaux à toutes les marées. Dix ans plus tard, la commune a acheté les entrepôts vides le
        long du quai et les a loués à des menuisiers, à des voiliers et à une école de jeunes marins. Lorsque la
        première régate a eu lieu, plus de quatre mille visiteurs sont venus, et le seul hôtel a dû installer des lits
        dans sa salle à manger. Depuis, le port gagne davantage grâce aux visiteurs qu'il n'a jamais gagné avec le
        commerce. Le sable demeure un problème : un hiver sur deux, une drague enlève environ douze mille mètres cubes,
        et la région paie la moitié des frais. Certains ingénieurs préféreraient une digue plus longue du côté ouest,
        qui détournerait le courant de l'entrée. D'autres craignent que les plages situées à l'est ne perdent leur
        sable, comme après la construction de la première digue. Une décision est attendue avant la fin de l'année
        prochaine, quand le contrat avec le propriétaire de la drague prendra fin. D'ici là, la profondeur de l'entrée
        est mesurée chaque mois, et les résultats paraissent dans le journal local.""",
}
"""A page of clean text in each language."""
