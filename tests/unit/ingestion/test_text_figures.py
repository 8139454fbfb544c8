from __future__ import annotations

import random
import textwrap
from collections.abc import Sequence

import pytest

from functions.core.ingestion import text_figures
from functions.core.ingestion.text_figures import Prose, TextFigures
from tests.support.damaged_documents import DAMAGES, PROSE

HUNGARIAN = """
    A Bizottság elfogadta a tagállamok mezőgazdasági üzemeinek fejlődéséről szóló jelentést. Minden
    vállalkozásnak évente jelentést kell benyújtania az előrehaladásról, és belső ellenőrzést kell végeznie.
    A támogatások felét a régiók fizetik, a másik felét pedig az állam. A következő évben a kikötő bejáratát
    ismét ki kell kotorni, mert a folyó sok homokot hordott oda. A halászok azonban továbbra is használják a
    belső medencét, amely elég mély a csónakjaik számára. A döntést az év végéig várják, amikor a szerződés
    lejár, és az eredmények megjelennek a helyi újságban.
    """


SPANISH = """
    La comisión aprobó el informe sobre el desarrollo de las explotaciones agrícolas en los Estados miembros.
    Todas las empresas deben presentar cada año un informe sobre los avances, y llevar a cabo un control
    interno. La mitad de las ayudas la pagan las regiones, y la otra mitad el Estado. El año próximo hay que
    dragar de nuevo la entrada del puerto, porque el río ha traído mucha arena. Los pescadores siguen usando
    la dársena interior, que es bastante profunda para sus barcos. La decisión se espera para finales de año,
    cuando termine el contrato con la empresa que posee la draga.
    """


def measure(*texts: str) -> TextFigures:
    return text_figures.measure([Prose(page, text) for page, text in enumerate(texts, 1)])


def lines_of(text: str, width: int = 72) -> Sequence[str]:
    return textwrap.wrap(" ".join(text.split()), width)


@pytest.mark.parametrize("lang", PROSE)
def test_clean_text_has_good_figures(lang: str) -> None:
    """LIB-10"""
    found = measure(PROSE[lang])
    assert found.words > 100
    assert found.unlikely_words is not None
    assert found.unlikely_words < 0.03
    assert (found.broken_sentences, found.split_words, found.garbled_pages) == (0, 0, ())


@pytest.mark.parametrize("lang", PROSE)
@pytest.mark.parametrize("damage", ["letters mapped wrongly", "glyphs in any order", "misread"])
def test_words_with_wrong_letters_are_unlikely(lang: str, damage: str) -> None:
    """LIB-10"""
    found = measure("\n".join(DAMAGES[damage](lines_of(PROSE[lang]), random.Random(1))))
    assert found.unlikely_words is not None
    assert found.unlikely_words > 0.16


def test_a_page_of_which_a_quarter_of_the_words_are_unlikely_is_named() -> None:
    """LIB-10"""
    shuffled = "\n".join(DAMAGES["glyphs in any order"](lines_of(PROSE["en"]), random.Random(1)))
    assert measure(PROSE["en"], shuffled, PROSE["fr"], shuffled).garbled_pages == (2, 4)


@pytest.mark.parametrize("lang", PROSE)
@pytest.mark.parametrize("damage", ["columns interleaved", "columns run together"])
def test_columns_that_run_into_each_other_break_sentences(lang: str, damage: str) -> None:
    """LIB-10: four pages, because a page has only a few of these places."""
    pages = [lines_of(PROSE[lang], width) for width in (30, 34, 38, 42)]
    found = measure(*("\n".join(DAMAGES[damage](lines, random.Random(1))) for lines in pages))
    assert found.broken_sentences is not None
    assert found.broken_sentences > 5


def test_a_line_end_inside_a_word_of_the_document_is_counted() -> None:
    """LIB-10"""
    split = "\n".join(["They went to the har\nbour and the break\nwater."] * 5)
    found = measure(PROSE["en"], split)
    assert found.split_words == pytest.approx(1000 * 10 / found.words, abs=0.01)
    assert measure(PROSE["en"], split.replace("har\n", "har-\n").replace("break\n", "break-\n")).split_words == 0


def test_letters_with_spaces_between_them_are_no_words() -> None:
    """LIB-10"""
    assert measure(PROSE["en"], " ".join(" ".join(PROSE["en"].split()).replace(" ", "  "))).garbled_pages == (2,)


@pytest.mark.parametrize("text", [HUNGARIAN, SPANISH], ids=["Hungarian", "Spanish"])
def test_other_languages_are_not_taken_for_misspelt_ones(text: str) -> None:
    """LIB-10"""
    found = measure(text)
    assert (found.unlikely_words, found.broken_sentences) == (0, 0)


def test_a_text_of_few_words_has_no_figures() -> None:
    """LIB-10"""
    assert measure("Wkh kduerxu ri wkh rog wrzq.") == TextFigures(5, None, None, None, ())
