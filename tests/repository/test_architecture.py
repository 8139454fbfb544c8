"""The source keeps the rules of the house: which layer imports which, and how large modules and functions may be."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.support import service
from tests.support.requirements import REPOSITORY

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
# What each room of the core may import of the others.
CORE_MAY_IMPORT = {
    "errors": set(),
    "models": set(),
    "ports": {"models"},
    "text": {"models"},
    "settings": {"errors", "text"},
    "extraction": {"errors", "models", "ports", "text"},
    "retrieval": {"errors", "models", "ports", "settings"},
    "citations": {"models", "retrieval", "text"},
    "ingestion": {"errors", "extraction", "models", "ports", "retrieval", "settings", "text"},
    "answering": {"citations", "errors", "models", "ports", "retrieval", "text"},
}
MAX_CORE_ARROWS = 30
MAX_ENTRIES = 14
PACKAGES = sorted({path.parent for path in MODULES} - {FUNCTIONS})
PAGE_ROOMS = sorted({path.parent for path in (FUNCTIONS / "web" / "static").rglob("*") if path.is_file()})
CLIENTS = {"psycopg", "pgvector", "openai", "supabase", "storage3", "httpx", "boto3", "fastapi", "starlette", "mangum"}
CLIENTS |= {"pydantic", "pydantic_settings"}
HEAVY = {"openai", "supabase", "storage3", "pdfplumber", "pypdfium2", "docx", "PIL", "numpy", "boto3"}
HEAVY |= {"onnx", "onnxruntime", "tokenizers", "safetensors", "prometheus_client"}


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


def read_imports(path: Path) -> set[Path]:
    """The modules of functions/ that a module imports, at its top or inside functions."""
    found = set()
    for parts in imported(ast.walk(parse(path))):
        if parts[0] == "functions":
            module = REPOSITORY.joinpath(*parts).with_suffix(".py")
            found.add(module if module.exists() else REPOSITORY.joinpath(*parts[:-1]).with_suffix(".py"))
    return found & set(MODULES)


def room_of(path: Path, package: Path) -> str:
    return path.relative_to(package).parts[0].removesuffix(".py")


def arrows_between_rooms(package: Path) -> dict[str, set[str]]:
    """For each module and package directly in `package`, the others that it imports."""
    inside = [path for path in MODULES if path.is_relative_to(package) and path.name != "__init__.py"]
    arrows: dict[str, set[str]] = {room_of(path, package): set() for path in inside}
    for path in inside:
        targets = {room_of(target, package) for target in read_imports(path) if target in inside}
        arrows[room_of(path, package)] |= targets - {room_of(path, package)}
    return arrows


def test_modules_do_not_import_each_other_in_a_cycle() -> None:
    TopologicalSorter({path: read_imports(path) for path in MODULES}).prepare()  # raises CycleError


@pytest.mark.parametrize("package", PACKAGES, ids=name_of)
def test_rooms_of_a_package_do_not_import_each_other_in_a_cycle(package: Path) -> None:
    TopologicalSorter(arrows_between_rooms(package)).prepare()  # raises CycleError


@pytest.mark.parametrize("package", [*PACKAGES, *PAGE_ROOMS], ids=name_of)
def test_a_package_has_at_most_14_entries(package: Path) -> None:
    """functions/ itself is left out: each module in it is a deployed function."""
    names = {path.name for path in package.iterdir()}
    assert len(names - {"__init__.py", "__pycache__"}) <= MAX_ENTRIES


def test_rooms_of_the_core_import_one_way() -> None:
    arrows = arrows_between_rooms(FUNCTIONS / "core")
    assert arrows == CORE_MAY_IMPORT
    assert sum(map(len, arrows.values())) <= MAX_CORE_ARROWS


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
