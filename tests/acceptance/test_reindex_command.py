"""`python -m functions.local reindex` moves a library to the local model of this version."""

from __future__ import annotations

from pathlib import Path

import pytest

from functions.local import reindex, terminal
from functions.local.server import serve
from functions.runtime import policy
from functions.runtime.config import Config
from tests.acceptance.test_reindexing import MINILM

TEXT = "The boiler burns wood chips in winter."


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    """An installation with one document, which MiniLM has indexed."""
    monkeypatch.setattr(policy, "POLICY_SECONDS", 0.0)
    config = Config(ibid_home=tmp_path / "home", log_level="CRITICAL")
    file = tmp_path / "boiler.txt"
    file.write_text(TEXT)
    with serve.open_services(config.model_copy(update={"embedding_model": "all-MiniLM-L6-v2"})) as services:
        terminal.add_file(services, terminal.local_user(), file)
        services.make_worker().ingest_next()
    return config


def test_the_command_moves_everything_and_says_so(config: Config, capsys: pytest.CaptureFixture[str]) -> None:
    """SET-6, FIX-6"""
    assert reindex.run(config) == 0
    done = f"Documents and notes are indexed with {policy.LOCAL_SERVER.name}."
    shown = capsys.readouterr()
    assert (shown.out, shown.err.splitlines()[-1]) == (
        f"{done}\n",
        "0 of 1 documents and notes are re-indexed.",
    )
    assert reindex.run(config) == 0
    assert capsys.readouterr().out == f"{done} There is nothing to re-index.\n"


def test_what_cannot_be_moved_is_counted(config: Config, capsys: pytest.CaptureFixture[str]) -> None:
    """SET-6"""
    (stored,) = (path for path in (config.home / "storage").rglob("*.txt") if path.read_bytes() == TEXT.encode())
    stored.write_bytes(b"\x00\x01\x02")
    assert reindex.run(config) == 1
    assert "1 could not be, and keep their old vectors" in capsys.readouterr().out


def test_the_server_says_at_its_start_that_the_library_has_another_model(
    config: Config, capsys: pytest.CaptureFixture[str]
) -> None:
    """SET-6, OPS-4"""
    with serve.open_services(config) as services:
        serve.warm_up(services)
        serve.announce_other_model(services)
    assert f"the library is indexed with {MINILM.model}, which stays in force" in capsys.readouterr().err
