"""Prints which optional requirements are missing before a test run, because their tests will be skipped or fail."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from tests.support import requirements

NEEDS: dict[str, Callable[[], object]] = {
    "browser tests": requirements.need_chromium,
    "accessibility tests": requirements.need_axe,
    "text recognition tests": requirements.need_tesseract,
    "pooler tests": lambda: requirements.need_program("pgbouncer", "/usr/sbin/pgbouncer"),
    "packaging tests": requirements.need_osls,
    "evaluation tests": requirements.need_eval_data,
    "corpus tests": requirements.need_corpus,
}


def main() -> None:
    for name, need in NEEDS.items():
        if reason := find_missing(need):
            print(f"ibid: a requirement of the {name} is missing: {reason}")
    if "SUPABASE_TEST_URL" not in os.environ:
        print("ibid: the storage contract is tested against the fake only: SUPABASE_TEST_URL is not set")


def find_missing(need: Callable[[], object]) -> str | None:
    try:
        need()
    except (pytest.skip.Exception, pytest.fail.Exception) as reason:
        return str(reason)
    return None


if __name__ == "__main__":
    main()
