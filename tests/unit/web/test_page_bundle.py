"""Joining the modules of the page into files; the browser tests run the result."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from functions.web import page_bundle
from functions.web.page_bundle import BundleError
from tests.support import page_files
from tests.support.requirements import REPOSITORY

STATIC = REPOSITORY / "functions" / "web" / "static"
HTML = """<!-- hooks --><link rel="icon" href="/static/icon.svg">
<link rel="stylesheet" href="/static/a.css">
<link rel="stylesheet" href="/static/b.css">
<script type="module" src="/static/app.js"></script>
"""
SOURCES = {
    "index.html": HTML,
    "icon.svg": "<svg/>",
    "a.css": "a {}\n",
    "b.css": "b {}\n",
    "app.js": 'import { one as first } from "./low/one.js";\nnew URL("./low/part.js", import.meta.url);\nfirst();\n',
    "low/one.js": "export function one() {}\n",
    "low/part.js": 'import { one } from "./one.js";\nimport { two } from "./two.js";\nexport const go = [one, two];\n',
    "low/two.js": "export const two = 2;\n",
}


def bundle(folder: Path, **changes: str) -> dict[str, str]:
    """The joined files of SOURCES by name, without the digest; the change `low_one` replaces low/one.js."""
    for name, text in {**SOURCES, **{f"{key.replace('_', '/')}.js": text for key, text in changes.items()}}.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return {name.rpartition("/")[2]: file.body.decode() for name, file in page_bundle.bundle(folder).items()}


def digest_of(files: Mapping[str, str]) -> str:
    return page_files.script_of(files["index.html"]).split("/")[2]


def test_the_app_holds_its_modules_in_the_order_of_their_imports(tmp_path: Path) -> None:
    """WEB-1"""
    assert bundle(tmp_path)["app.js"] == (
        "const low_one = (() => {\nfunction one() {}\nreturn { one };\n})();\n"
        "const app = (() => {\nconst { one: first } = low_one;\n"
        'new URL("./part.js", import.meta.url);\nfirst();\nreturn {  };\n})();\n'
        "export { low_one };\n"
    )


def test_a_part_holds_what_it_alone_needs_and_imports_the_rest_from_the_app(tmp_path: Path) -> None:
    assert bundle(tmp_path)["part.js"] == (
        'import { low_one } from "./app.js";\n'
        "const low_two = (() => {\nconst two = 2;\nreturn { two };\n})();\n"
        "const low_part = (() => {\nconst { one } = low_one;\nconst { two } = low_two;\n"
        "const go = [one, two];\nreturn { go };\n})();\n"
        "export const { go } = low_part;\n"
    )


def test_a_module_that_two_parts_need_is_in_the_app(tmp_path: Path) -> None:
    other = 'import { two } from "./two.js";\nexport const other = two;\n'
    app = SOURCES["app.js"] + 'new URL("./low/other.js", import.meta.url);\n'
    files = bundle(tmp_path, app=app, low_other=other)
    assert {name for name, text in files.items() if "const two = 2" in text} == {"app.js"}


def test_the_page_links_one_script_and_one_style_sheet(tmp_path: Path) -> None:
    files = bundle(tmp_path)
    folder = f"/static/{digest_of(files)}"
    assert files["page.css"] == "a {}\nb {}\n"
    assert files["index.html"] == (
        '<link rel="icon" href="data:image/svg+xml,%3Csvg/%3E">\n'
        f'  <link rel="stylesheet" href="{folder}/page.css">\n<script type="module" src="{folder}/app.js"></script>\n'
    )


def test_any_change_of_a_module_changes_the_address_of_the_files(tmp_path: Path) -> None:
    first = digest_of(bundle(tmp_path))
    assert digest_of(bundle(tmp_path)) == first
    assert digest_of(bundle(tmp_path, low_two="export const two = 3;\n")) != first


@pytest.mark.parametrize(
    "statement", ['import "./low/one.js";', "export default 1;", "export * from './a.js';", 'import("./low/one.js");']
)
def test_a_statement_that_cannot_be_joined_is_named(tmp_path: Path, statement: str) -> None:
    with pytest.raises(BundleError, match=re.escape(f"low/two.js: cannot be bundled: {statement}")):
        bundle(tmp_path, low_two=f"{statement}\n")


def test_dialogs_search_french_texts_and_the_sample_are_parts_of_the_page() -> None:
    """WEB-1"""
    names = {name.rpartition("/")[2] for name in page_bundle.bundle(STATIC)}
    dialogs = {
        "api_keys.js",
        "attach_dialog.js",
        "document_dialog.js",
        "save_note_dialog.js",
        "settings.js",
        "shortcut_sheet.js",
    }
    forms = {"notebook_form.js", "sign_in_form.js", "token_form.js"}
    search = {"filters.js", "passages.js"}
    texts = {"words_fr.js", "sample_document.js"}
    assert names == {"index.html", "page.css", "app.js"} | dialogs | forms | search | texts
