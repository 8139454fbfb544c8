"""Response bodies of the usage by day."""

from __future__ import annotations

from datetime import date

from pydantic import BaseModel


class Day(BaseModel):
    """What the answers of a day (UTC) took; the cost is in US dollars, and 0 while no prices are set."""

    day: date
    questions: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float


class Usage(BaseModel):
    """The last days, oldest first; `of_everyone` says whether the answers of all users are counted."""

    of_everyone: bool
    days: list[Day]
