"""The metadata of a PDF, from its information dictionary, its XMP packet and its first page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from functions.core import models
from functions.core.extraction.pdf import filings, metadata
from functions.core.extraction.pdf.reader import PdfPages
from functions.core.text import dates
from tests.support import documents, requirements
from tests.support.hostile_documents import make_operators_pdf

PRISM = "http://prismstandard.org/namespaces/basic/2.0/"


def make_packet(properties: str, description: str = "") -> str:
    return (
        '<?xpacket begin="" id="W5M0MpCehiHzreSzNTczkc9d"?><x:xmpmeta xmlns:x="adobe:ns:meta/">'
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description rdf:about="" '
        f'xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:prism="{PRISM}" xmlns:pdf="http://ns.adobe.com/pdf/1.3/" '
        f"{description}>{properties}</rdf:Description></rdf:RDF></x:xmpmeta>"
    )


def write_pdf(path: Path, *lines: str, before: str = "", packets: tuple[str, ...] = (), **info: str) -> Path:
    """A PDF with these lines, `before` them other text, entries of its information dictionary, and XMP packets."""
    shown = " ".join(f"({line}) Tj T*" for line in lines)
    content = f"BT 72 700 Td {before} /F1 12 Tf 14 TL {shown} ET".encode("cp1252")
    entries = " ".join(f"/{key}<feff{value.encode('utf-16-be', 'surrogatepass').hex()}>" for key, value in info.items())
    streams = [content, *(packet.encode() for packet in packets)]
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 6 0 R/Resources<</Font<</F1 4 0 R>>>>>>",
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
        f"<<{entries}>>".encode(),
        *(b"<</Length %d>>stream\n%s\nendstream" % (len(stream), stream) for stream in streams),
    ]
    body, offsets = b"%PDF-1.7\n", []
    for number, text in enumerate(objects, 1):
        offsets.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, text)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    size = len(objects) + 1
    tail = b"xref\n0 %d\n0000000000 65535 f \n%strailer<</Root 1 0 R/Info 5 0 R/Size %d>>\nstartxref\n%d\n%%%%EOF"
    path.write_bytes(body + tail % (size, table, size, len(body)))
    return path


def read(path: Path) -> models.DocumentMetadata:
    with PdfPages(path, max_pages=1000) as document:
        return document.metadata


ARTICLE = make_packet(
    "<dc:title><rdf:Alt><rdf:li xml:lang='x-default'>On Rivers</rdf:li></rdf:Alt></dc:title>"
    "<dc:creator><rdf:Seq><rdf:li>Zoé Müller</rdf:li><rdf:li>Ada King</rdf:li></rdf:Seq></dc:creator>"
    "<prism:doi>10.1000/rivers.7</prism:doi><prism:publicationName>Water Letters</prism:publicationName>"
    "<prism:coverDate>2020-03</prism:coverDate>"
)


def test_all_properties_are_read_from_xmp(tmp_path: Path) -> None:
    """ING-3"""
    path = write_pdf(tmp_path / "a.pdf", "Text.", packets=(ARTICLE,), CreationDate="D:20210101", Author="typesetter")
    assert read(path) == models.DocumentMetadata(
        "On Rivers", "Zoé Müller, Ada King", "10.1000/rivers.7", "Water Letters", "2020-03"
    )


def test_properties_may_be_attributes_and_names_may_have_commas(tmp_path: Path) -> None:
    packet = make_packet(
        "<dc:creator><rdf:Seq><rdf:li>Müller, Zoé</rdf:li><rdf:li>King, Ada</rdf:li></rdf:Seq></dc:creator>",
        'prism:doi="10.1000/1" prism:publicationDate="2019-13-40" prism:coverDisplayDate="March 2019"',
    )
    found = read(write_pdf(tmp_path / "a.pdf", "Text.", packets=(packet,)))
    assert (found.author, found.doi, found.published_at) == ("Müller, Zoé; King, Ada", "10.1000/1", "2019-03")


def test_the_xmp_packet_of_an_image_is_not_that_of_the_document(tmp_path: Path) -> None:
    picture = make_packet("<dc:format>image/jpeg</dc:format><dc:title>Sunset</dc:title>")
    assert metadata.read_xmp(write_pdf(tmp_path / "a.pdf", packets=(ARTICLE, picture)))["dc:title"] == ["On Rivers"]
    assert metadata.read_xmp(write_pdf(tmp_path / "b.pdf", packets=(picture,))) == {}


@pytest.mark.parametrize(
    "packet",
    [
        "<x:xmpmeta><broken></x:xmpmeta>",
        "<x:xmpmeta",
        ARTICLE.replace("<x:xmpmeta", '<x:xmpmeta a="' + "x" * 300_000 + '"'),
        '<x:xmpmeta <!DOCTYPE a [<!ENTITY e "boom">]><a>&e;</a></x:xmpmeta>',
        "<x:xmpmeta>" + "<a>" * 30_000 + "</a>" * 30_000 + "</x:xmpmeta>",
    ],
    ids=["broken", "cut off", "too long", "entities", "deep"],
)
def test_a_bad_packet_is_skipped(tmp_path: Path, packet: str) -> None:
    """ING-11"""
    path = write_pdf(tmp_path / "a.pdf", "Text.", packets=(ARTICLE, packet), Title="Named")
    assert metadata.read_xmp(path)["dc:title"] == ["On Rivers"]


@pytest.mark.parametrize(
    "title", ["untitled", "Microsoft Word - a.doc", "report_2.indd", "Présentation PowerPoint", "10.1000/xyz", "- 12 -"]
)
def test_a_useless_title_is_none(tmp_path: Path, title: str) -> None:
    """ING-3"""
    assert read(write_pdf(tmp_path / "a.pdf", "All of", "one size", Title=title)).title is None


def test_the_title_is_the_largest_text_that_names_the_document(tmp_path: Path) -> None:
    """ING-3"""
    sizes = {"FORM 7-B": 30, "Rivers of the": 20, "North": 20, "Chapter 1": 18}
    large = " ".join(f"/F1 {size} Tf {2 * size} TL ({line}) Tj T*" for line, size in sizes.items())
    path = write_pdf(tmp_path / "a.pdf", *["They flow."] * 9, before=large, Title="logo.eps")
    assert read(path).title == "Rivers of the North"


@pytest.mark.parametrize(
    ("cover", "title"),
    [
        (
            "FORM\n10-K\nFor the fiscal year ended December 31, 2018\nCommission file number 1-3285\nACME COMPANY\n"
            "(Exact name of registrant as specified in its charter)",
            "ACME COMPANY, Form 10-K, fiscal year ended December 31, 2018",
        ),
        (
            "Form 8-K\nMay 5, 2023\nDate of Report (Date of earliest event reported)\nAcme, Inc.\n____\n"
            "(Exact Name of Registrant as Specified in Its Charter)",
            "Acme, Inc., Form 8-K, May 5, 2023",
        ),
        (
            "FORM 8-K\nDate of Report (Date of earliest event reported): May 5, 2023\nAcme\n(Exact name of registrant)",
            "Acme, Form 8-K, May 5, 2023",
        ),
        ("Form 10-K is what companies file. It begins with the exact name of the registrant.", None),
    ],
)
def test_a_filing_is_named_by_company_form_and_period(cover: str, title: str | None) -> None:
    """ING-3"""
    assert filings.name_filing(cover) == title


@pytest.mark.parametrize(
    "author", ["", "(anonymous)", "Unknown", "Administrator", "user", "Microsoft Office User", "pdfTeX-1.40", "---"]
)
def test_a_placeholder_author_is_none(tmp_path: Path, author: str) -> None:
    """ING-3"""
    assert read(write_pdf(tmp_path / "a.pdf", Author=author)).author is None


def test_values_are_cleaned(tmp_path: Path) -> None:
    """ING-4"""
    found = read(write_pdf(tmp_path / "a.pdf", Title="A\0 title\ud83d\nof\x07 two  lines\0", Author="Zoé\x00"))
    assert (found.title, found.author) == ("A title of two lines", "Zoé")


@pytest.mark.parametrize(
    ("info", "lines", "doi"),
    [
        ({}, ["see https://doi.org/10.1000/text."], "10.1000/text"),
        ({"Subject": "Water, doi:10.1000/subject"}, ["Text"], "10.1000/subject"),
        ({"doi": "10.1000/own"}, ["Text"], "10.1000/own"),
        ({"Keywords": "none"}, ["Text"], None),
    ],
)
def test_the_doi_is_in_the_text_or_the_information(
    tmp_path: Path, info: dict[str, Any], lines: list[str], doi: str | None
) -> None:
    """ING-3"""
    assert read(write_pdf(tmp_path / "a.pdf", *lines, **info)).doi == doi


@pytest.mark.parametrize(
    ("line", "journal"),
    [
        ("Journal of Applied Hydrology, Vol. 12, No. 3", "Journal of Applied Hydrology"),
        ("International Journal of Water 12 (2020) 1-9", "International Journal of Water"),
        ("Proceedings of the Royal Society of London", "Proceedings of the Royal Society of London"),
        ("Revue française de sociologie, 2019, vol. 60", "Revue française de sociologie"),
        ("Revue des Deux Mondes", "Revue des Deux Mondes"),
        ("NATURE COMMUNICATIONS | (2020) 11:1234 | https://doi.org/10.1038/s1", "NATURE COMMUNICATIONS"),
        ("Smith et al. BMC Medicine (2020) 18:123", "BMC Medicine"),
        ("Published in: Annals of Botany, 2011", "Annals of Botany"),
        ("The journal of the expedition was lost at sea.", None),
        ("We review the journals of the period in detail", None),
        ("Journal", None),
        ("Annual Report 2019", None),
        ("Chapter 3 | Rivers", None),
        ("Bulletin", None),
    ],
)
def test_the_journal_is_read_from_the_first_page(tmp_path: Path, line: str, journal: str | None) -> None:
    """ING-3"""
    lines = [line.replace("(", r"\(").replace(")", r"\)"), "On Rivers", "Abstract. They flow."]
    assert read(write_pdf(tmp_path / "a.pdf", *lines)).journal == journal


@pytest.mark.parametrize(
    ("subject", "journal"),
    [
        ("Journal of Theoretical Biology, 256 (2009) 333-341. doi:10.1016/j.jtbi", "Journal of Theoretical Biology"),
        ("Nature Communications, doi:10.1038/s41467-020-1", "Nature Communications"),
        ("Water Research, vol. 3", "Water Research"),
        ("Annual report, 2019", None),
        ("unspecified", None),
    ],
)
def test_the_journal_is_read_from_the_subject(tmp_path: Path, subject: str, journal: str | None) -> None:
    """ING-3"""
    assert read(write_pdf(tmp_path / "a.pdf", "Text", Subject=subject)).journal == journal


def test_a_document_named_like_a_journal_is_not_in_one(tmp_path: Path) -> None:
    path = documents.make_pdf(tmp_path / "a.pdf", ["Some text", "and more"], heading="Journal of the Plague Year")
    assert (read(path).title, read(path).journal) == ("Journal of the Plague Year", None)


@pytest.mark.parametrize(
    ("line", "date"),
    [
        ("Received: 1 May 2020; Accepted: 3 June 2020; Published: 8 June 2020", "2020-06-08"),
        ("Received 1 May 2020. Published online 8 June 2020", "2020-06-08"),
        ("Published: March 12, 2020", "2020-03-12"),
        ("Publié le 3 mai 2019", "2019-05-03"),
        ("Publié le 1er août 2019", "2019-08-01"),
        ("Date de publication : 25/12/2018", "2018-12-25"),
        ("Published: 2017", "2017"),
        ("Published in 2017 to great acclaim", "2001-02-03"),
        ("Received 1 May 2020", "2001-02-03"),
        ("Published: 31 February 2020", "2001-02-03"),
        ("first published 12 May 2003 by", "2001-02-03"),
    ],
)
def test_the_publication_date_is_read_from_the_page_else_from_the_file(tmp_path: Path, line: str, date: str) -> None:
    """ING-3"""
    assert read(write_pdf(tmp_path / "a.pdf", "On Rivers", line, CreationDate="D:20010203040506")).published_at == date


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("2020-03-12T10:00:00Z", "2020-03-12"),
        ("12th of March 2020", "2020-03-12"),
        ("Sept. 2020", "2020-09"),
        ("3 févr. 2020", "2020-02-03"),
        ("02/03/2020", "2020"),
        ("13/03/2020", "2020-03-13"),
        ("2020-02-30", None),
        ("2020", "2020"),
        ("1200-01-01", None),
        ("12345", None),
        ("soon", None),
    ],
)
def test_dates_become_iso(text: str, date: str | None) -> None:
    """ING-3"""
    assert dates.parse_date(text) == date


@pytest.mark.parametrize("created", ["D:20191332", "D:0000", "yesterday", ""])
def test_a_date_that_does_not_exist_is_none(tmp_path: Path, created: str) -> None:
    assert read(write_pdf(tmp_path / "a.pdf", "Text", CreationDate=created)).published_at is None


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("sample-files/output_with_metadata_pymupdf.pdf", ("Sample PDF with XMP Metadata", "John Doe", "2023-04-10")),
        ("sample-files/GeoTopo-komprimiert.pdf", ("Geometrie und Topologie", "Martin Thoma", "2016-12-31")),
        ("derived/owner-only.pdf", ("This page is inside an encrypted file.", None, "2000-01-01")),
        ("OCRmyPDF/francais.pdf", (None, None, "2015-08-18")),
    ],
)
def test_metadata_of_real_files(name: str, found: tuple[str | None, str | None, str]) -> None:
    """ING-3"""
    metadata = read(requirements.need_corpus(f"files/{name}"))
    assert (metadata.title, metadata.author, metadata.published_at) == found


@pytest.mark.parametrize("matrix", ["1 0 0 0 72 700", "1 0 0 0.001 72 700"])
def test_a_first_line_without_height_is_no_fault(tmp_path: Path, matrix: str) -> None:
    """LIM-1"""
    flat = f"BT /F1 12 Tf {matrix} Tm (The lease ends here) Tj ET".encode()
    with PdfPages(make_operators_pdf(tmp_path / "a.pdf", flat), max_pages=1) as document:
        assert document.metadata.title == "The lease ends here"
