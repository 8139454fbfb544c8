"""Says before a test run which optional things are missing, so that a skip further down is no surprise."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from tests import requirements

NEEDS: dict[str, Callable[[], object]] = {
    "browser tests": requirements.need_chromium,
    "text recognition tests": requirements.need_tesseract,
    "packaging tests": requirements.need_osls,
    "evaluation tests": requirements.need_eval_data,
    "tests on odd files": requirements.need_corpus,
}


def main() -> None:
    verb = "fail" if os.environ.pop("IBID_REQUIRE_ALL", None) == "1" else "be skipped"
    for name, need in NEEDS.items():
        if reason := reason_missing(need):
            print(f"ibid: {name} will {verb}: {reason}")


def reason_missing(need: Callable[[], object]) -> str | None:
    try:
        need()
    except pytest.skip.Exception as reason:
        return str(reason)
    return None


if __name__ == "__main__":
    main()
