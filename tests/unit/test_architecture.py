"""The rules of the house that the source shows: which layer imports which, and how large modules and functions are."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import service
from tests.requirements import REPOSITORY

FUNCTIONS = REPOSITORY / "functions"
MODULES = sorted(FUNCTIONS.rglob("*.py"))

# What each layer may import of this package; no layer may import the handlers, which are directly in functions/.
MAY_IMPORT = {
    "core": {"core"},
    "adapters": {"core", "adapters"},
    "runtime": {"core", "adapters", "runtime"},
    "web": {"core", "adapters", "runtime", "web"},
    "handler": {"core", "adapters", "runtime", "web"},
    "local": {"core", "adapters", "runtime", "web", "handler", "local"},
}
CLIENTS = {"psycopg", "pgvector", "openai", "supabase", "storage3", "httpx", "boto3", "fastapi", "starlette", "mangum"}
CLIENTS |= {"pydantic", "pydantic_settings"}
HEAVY = {"openai", "supabase", "storage3", "pdfplumber", "pypdfium2", "docx", "PIL", "numpy", "boto3"}
HEAVY |= {"onnx", "onnxruntime", "tokenizers", "safetensors"}


def name_of(path: Path) -> str:
    return str(path.relative_to(REPOSITORY))


def layer_of(path: Path) -> str:
    parts = path.relative_to(FUNCTIONS).parts
    return parts[0] if len(parts) > 1 else "handler"


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def nodes_run_at_import(node: ast.AST) -> Iterator[ast.AST]:
    """Everything except function bodies and blocks for type checkers."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) or is_type_checking(child):
            continue
        yield child
        yield from nodes_run_at_import(child)


def imported(nodes: Iterator[ast.AST]) -> Iterator[tuple[str, ...]]:
    """The dotted names imported, as parts: `from functions.core import errors` is (functions, core, errors)."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (tuple(alias.name.split(".")) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: relative import"
            yield from ((*(node.module or "").split("."), alias.name) for alias in node.names)


def imported_layers(path: Path) -> set[str]:
    ours = [parts for parts in imported(ast.walk(parse(path))) if parts[0] == "functions"]
    return {parts[1] if parts[1] in MAY_IMPORT else "handler" for parts in ours}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_layers_import_in_one_direction(path: Path) -> None:
    assert imported_layers(path) <= MAY_IMPORT[layer_of(path)]


@pytest.mark.parametrize("path", [path for path in MODULES if layer_of(path) == "core"], ids=name_of)
def test_the_core_imports_no_client_library(path: Path) -> None:
    assert not {parts[0] for parts in imported(ast.walk(parse(path)))} & CLIENTS


@pytest.mark.parametrize("path", [path for path in MODULES if layer_of(path) != "local"], ids=name_of)
def test_heavy_libraries_are_imported_where_they_are_used(path: Path) -> None:
    assert not {parts[0] for parts in imported(nodes_run_at_import(parse(path)))} & HEAVY


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_has_at_most_400_lines(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_function_has_at_most_60_lines(path: Path) -> None:
    found = [node for node in ast.walk(parse(path)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    assert not [node.name for node in found if (node.end_lineno or 0) - node.lineno >= 60]


def test_every_module_directly_in_functions_is_deployed() -> None:
    """FIX-3"""
    modules = {path.stem for path in FUNCTIONS.glob("*.py")} - {"__init__"}
    assert modules == {module.removeprefix("functions.") for module in service.python_handlers().values()}
