"""A chat model's answers to a question set, measured with each prompt through a model server."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from functions.local.evaluation import answering, command, question_sets
from functions.local.evaluation.answer_scores import judge
from tests.eval import replay
from tests.support.fakes.model_server import FakeModelServer, Reply, answer

HANDBOOK = Path(__file__).with_name("handbook")

PASSAGES = {
    "sun": "The Sun is a star. The light of the Sun takes eight minutes to reach the Earth.",
    "bread": "Bread rises because yeast turns sugar into carbon dioxide.",
}
QUERIES = {
    "sun": ("How long does the light of the Sun take to reach the Earth?", "eight minutes"),
    "bread": ("Why does bread rise?", "yeast turns sugar into carbon dioxide"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A set in the documented format."""
    corpus = [{"passage_id": id_, "title": None, "text": text} for id_, text in PASSAGES.items()]
    queries = [
        {"query_id": id_, "question": text, "answer": answer, "evidence": [{"passage_id": id_}], "lang": "en"}
        for id_, (text, answer) in QUERIES.items()
    ]
    for name, rows in (("corpus.jsonl", corpus), ("queries.jsonl", queries)):
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return tmp_path


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeModelServer]:
    with FakeModelServer() as running:
        monkeypatch.setenv("IBID_HOME", str(tmp_path / "home"))
        monkeypatch.setenv("OPENAI_BASE_URL", running.base_url)
        monkeypatch.setenv("CHAT_MODEL", "fake")
        yield running


def read_figures(printed: str) -> dict[str, tuple[float, float]]:
    rows = json.loads(printed.splitlines()[-1])["figures"]
    return {row["figure"].partition(", ")[2]: (row["value"], row["baseline"]) for row in rows}


def test_both_prompts_answer_from_the_same_passages(
    server: FakeModelServer, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """EVAL-4: the fake quotes the first sentence, which answers the question about bread alone."""
    record = folder / "replies.jsonl"
    assert command.main([str(folder), "--answers", "--parallel", "2", "--record", str(record)]) == 0
    printed = capsys.readouterr().out
    lines = [line.split()[:4] for line in printed.splitlines() if line.startswith(("full", "compact"))]
    assert lines == [["full", "2", "1", "0"], ["compact", "2", "1", "0"]]
    found = read_figures(printed)
    assert (found["right answers"], found["answers that failed"]) == ((1, 1), (0, 0))
    assert found["output tokens"][0] < found["output tokens"][1]
    rows = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]
    assert [row["query_id"] for row in rows] == list(QUERIES)
    assert rows[1]["replies"]["compact"] == {"text": f"{PASSAGES['bread'][:-1]} [1].", "code": None}


def test_recorded_replies_make_the_same_answers_again(server: FakeModelServer, folder: Path) -> None:
    """EVAL-4: a wrong reply, a refusal, a right one without a source, and one that cites the wrong passage."""
    said = "Yeast turns sugar into carbon dioxide"
    server.script(answer(("It takes long.", [])), "NO_ANSWER", answer((f"{said}.", [])), f"{said} [2].")
    record = folder / "replies.jsonl"
    command.main([str(folder), "--answers", "--record", str(record)])
    replies = [row["replies"] for row in question_sets.read_lines(record)]
    made = list(replay.replay(record))
    assert [one.reply for one in made] == [reply["text"] for both in replies for reply in both.values()]
    assert [judge(one) for one in made] == ["wrong", "refused", "right", "right"]
    assert [set(one.cited) for one in made] == [set(), set(), {"bread"}, {"bread"}]


def test_a_refusal_and_an_error_are_counted(
    server: FakeModelServer, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """EVAL-4: the model refuses one prompt with a status that is not tried again, and finds no answer with another."""

    def respond(body: dict[str, Any]) -> Reply:
        is_compact = "response_format" not in body
        return Reply(["NO_ANSWER"]) if is_compact else Reply(status=403)

    server.respond = respond
    assert command.main([str(folder), "--answers"]) == 2
    printed = capsys.readouterr()
    assert "    model_rejected: 2" in printed.out.splitlines()
    assert "answered no question" in printed.err


def test_without_a_chat_model_nothing_is_measured(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """EVAL-4"""
    assert command.main([str(folder), "--answers"]) == 2
    assert "CHAT_MODEL is not set" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--parallel", "2"], ["--answers", "--parallel", "0"], ["--record", "x"]])
def test_options_that_cannot_be_meant_are_refused(arguments: list[str]) -> None:
    """EVAL-4"""
    with pytest.raises(SystemExit):
        command.main(["set", *arguments])


def test_the_recorded_replies_of_a_real_model_are_judged_as_when_they_were_written() -> None:
    """EVAL-4: Qwen2.5-Coder of 1.5 billion parameters, about a set of this project. Two questions have no answer."""
    made = list(replay.replay(HANDBOOK / "replies.jsonl"))
    counts = {profile: Counter(judge(one) for one in made if one.profile == profile) for profile in answering.PROFILES}
    assert counts == {
        "full": {"right": 7, "wrong": 3, "unjudged": 2},
        "compact": {"right": 8, "wrong": 1, "refused": 1, "unjudged": 2},
    }
