"""Names a company's filing with the SEC: its cover has the name of the company in no special place or size."""

from __future__ import annotations

import re
from typing import Final

_REGISTRANT: Final = re.compile(
    r"^(?P<name>[^\n]*[^\W\d_]{2}[^\n]*)\n(?:[\W_]*\n)?[\s_]*\(\s*Exact\s+name\s+of\s+(?:the\s+)?registrant",
    re.I | re.M,
)
_FORM: Final = re.compile(r"\bForm\s+((?:10|8|6)-?[KQ]|[24]0-?F)(?:T?\b)", re.I)
_DATE: Final = r"(?P<date>[A-Z][a-z]+\s+\d{1,2},?\s+\d{4})"
_YEAR_OR_QUARTER: Final = r"(?P<kind>(?:fiscal\s+|quarterly\s+|transition\s+)?(?:year|quarter|period))"
_PERIODS: Final = (
    re.compile(rf"for\s+the\s+{_YEAR_OR_QUARTER}\s+ended:?\s+{_DATE}", re.I),
    re.compile(rf"(?P<kind>){_DATE}\s*\n\(?date\s+of\s+(?:report|earliest\s+event)", re.I),
    re.compile(rf"(?P<kind>)date\s+of\s+(?:report|earliest\s+event)[^:\n]*:?\s+{_DATE}", re.I),
)
_MAX_NAME: Final = 120


def name_filing(cover: str) -> str | None:
    """Company, form and period of a filing, such as "ACME INC., Form 10-K, fiscal year ended June 30, 2021".

    None for any other document.
    """
    registrant, form = _REGISTRANT.search(cover), _FORM.search(cover)
    if registrant is None or form is None:
        return None
    names = [registrant["name"][:_MAX_NAME].strip(" ,_"), f"Form {form[1].upper()}"]
    period = next(filter(None, (pattern.search(cover) for pattern in _PERIODS)), None)
    if period is not None:
        kind = period["kind"].lower()
        names.append(f"{kind} ended {period['date']}" if kind else period["date"])
    return ", ".join(" ".join(name.split()) for name in names)
