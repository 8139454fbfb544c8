"""Says before a test run which optional things are missing, so that a skip (or failure) further down is no surprise."""

from __future__ import annotations

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
    for name, need in NEEDS.items():
        if reason := reason_missing(need):
            print(f"ibid: not everything for the {name} is here: {reason}")


def reason_missing(need: Callable[[], object]) -> str | None:
    try:
        need()
    except (pytest.skip.Exception, pytest.fail.Exception) as reason:
        return str(reason)
    return None


if __name__ == "__main__":
    main()
