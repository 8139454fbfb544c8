"""Rules that are read from the source: which package imports which, and how large modules and functions may be."""

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
# The imports between the modules and packages of each package that contains packages; modules without any are left out.
MAY_IMPORT_INSIDE: dict[str, dict[str, set[str]]] = {
    "core": {
        "errors": set(),
        "background": set(),
        "models": set(),
        "ports": {"models"},
        "text": {"models"},
        "settings": {"errors", "text"},
        "citations": {"models", "retrieval", "text"},
        "extraction": {"errors", "models", "ports", "text"},
        "retrieval": {"background", "errors", "models", "ports", "settings", "text"},
        "answering": {"citations", "errors", "models", "ports", "retrieval", "text"},
        "ingestion": {"errors", "extraction", "models", "ports", "retrieval", "settings", "text"},
    },
    "core/extraction": {
        "file_types": {"plain_text"},
        "docx": {"file_types", "plain_text"},
        "pdf": {"ocr", "plain_text"},
        "documents": {"docx", "pdf", "plain_text"},
        "page_faults": {"documents"},
        "child_program": {"documents", "file_types", "pdf"},
        "child_process": {"child_program"},
        "isolation": {"child_process"},
    },
    "core/extraction/pdf": {
        "line_pieces": {"geometry"},
        "metadata": {"filings", "text_layer"},
        "page_objects": {"geometry"},
        "drawing": {"geometry", "page_objects"},
        "page_images": {"geometry", "reader"},
        "reading_order": {"geometry", "line_pieces"},
        "tables": {"geometry", "page_objects"},
        "hidden_text": {"drawing", "geometry", "page_objects", "text_layer"},
        "reader": {"hidden_text", "metadata", "tables", "text_layer"},
        "accents": {"geometry"},
        "text_layer": {"accents", "geometry", "line_pieces", "page_objects", "reading_order"},
    },
    "core/answering": {
        "extracts": set(),
        "answer_text": {"prompts"},
        "answers": {"extracts", "model_writer", "prompts", "tool_rounds"},
        "follow_ups": {"short_requests"},
        "model_writer": {"reply_reader", "tool_rounds"},
        "query_rephrasing": {"short_requests"},
        "query_translation": {"short_requests"},
        "reply_reader": {"answer_text"},
        "tool_results": {"prompts"},
        "tool_rounds": {"prompts", "tools"},
        "tools": {"tool_results"},
    },
    "core/ingestion": {
        "chunking": set(),
        "outline": {"chunking"},
        "batch_chunks": {"chunking", "jobs"},
        "quality": set(),
        "text_figures": {"spelling"},
        "report": {"batch_chunks", "jobs", "quality", "text_figures"},
        "calibration": {"embedding", "self_retrieval"},
        "jobs": {"calibration", "chunking", "outline", "self_retrieval", "text_figures"},
        "translation": {"embedding"},
        "worker": {
            "batch_chunks",
            "calibration",
            "chunking",
            "embedding",
            "jobs",
            "late_chunking",
            "outline",
            "report",
            "self_retrieval",
            "text_figures",
            "translation",
        },
    },
    "core/citations": {
        "figures": set(),
        "relocation": {"quotes"},
        "occurrences": {"quotes"},
        "passage": {"figures", "quotes"},
        "support": {"figures"},
        "statements": {"numbering", "passage"},
        "assessment": {"figures", "numbering", "passage", "statements", "support"},
        "cite": {"assessment", "figures", "numbering", "passage", "quotes", "sections", "statements"},
    },
    "adapters": {
        "models": set(),
        "postgres": set(),
        "laptop": {"postgres"},
    },
    "adapters/postgres": {
        "ingestion": {"connection"},
        "cited_sources": {"connection"},
        "conversations": {"connection", "documents", "paging"},
        "documents": {"connection", "ingestion", "paging"},
        "embedding": {"connection", "settings"},
        "jobs": {"connection", "ingestion"},
        "messages": {"connection", "conversations", "paging", "users"},
        "notebooks": {"connection", "notes", "paging"},
        "notes": {"connection", "documents", "paging"},
        "search": {"connection", "users"},
        "settings": {"connection", "paging"},
        "users": {"connection"},
    },
    "runtime": {
        "logging": {"config"},
        "policy": {"config"},
        "metrics": {"config", "logging"},
        "reindexing": {"embedding_servers", "policy", "services"},
        "embedding_servers": {"config", "policy", "services"},
        "readiness": {"config", "reindexing", "services"},
        "toolbox": {"searching", "services"},
        "searching": {"metrics", "policy", "services"},
        "translating": {"metrics", "policy", "services"},
        "services": {"config", "logging", "policy"},
        "asking": {"metrics", "policy", "searching", "services", "toolbox", "translating"},
    },
    "web": {
        "schemas": set(),
        "app": {"errors"},
        "openapi": {"errors", "schemas"},
        "routes": {"deps", "discarding", "errors", "mcp_server", "page_bundle", "polling", "schemas", "sse"},
    },
    "local": {
        "database": set(),
        "packaging": set(),
        "forget_user": {"server"},
        "ratings": {"server"},
        "reindex": {"server", "terminal"},
        "server": {"database", "packaging"},
        "terminal": {"server"},
        "evaluation": {"database", "server"},
        "__main__": {"database", "evaluation", "forget_user", "ratings", "reindex", "server", "terminal"},
    },
}
MAX_CORE_ARROWS = 30
MAX_ENTRIES = 14
PACKAGES = sorted({path.parent for path in MODULES} - {FUNCTIONS})
PAGE_FOLDERS = sorted({path.parent for path in (FUNCTIONS / "web" / "static").rglob("*") if path.is_file()})
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


def entry_of(path: Path, package: Path) -> str:
    return path.relative_to(package).parts[0].removesuffix(".py")


def imports_inside(package: Path) -> dict[str, set[str]]:
    """For each module and package directly in `package`, the others that it imports."""
    inside = [path for path in MODULES if path.is_relative_to(package) and path.name != "__init__.py"]
    found: dict[str, set[str]] = {entry_of(path, package): set() for path in inside}
    for path in inside:
        targets = {entry_of(target, package) for target in read_imports(path) if target in inside}
        found[entry_of(path, package)] |= targets - {entry_of(path, package)}
    return found


def test_no_module_is_part_of_an_import_cycle() -> None:
    TopologicalSorter({path: read_imports(path) for path in MODULES}).prepare()  # raises CycleError


@pytest.mark.parametrize("package", PACKAGES, ids=name_of)
def test_a_package_has_no_import_cycle(package: Path) -> None:
    TopologicalSorter(imports_inside(package)).prepare()  # raises CycleError


@pytest.mark.parametrize("package", [*PACKAGES, *PAGE_FOLDERS], ids=name_of)
def test_a_package_has_at_most_14_entries(package: Path) -> None:
    """functions/ itself is left out: each module in it is a deployed function."""
    names = {path.name for path in package.iterdir()}
    assert len(names - {"__init__.py", "__pycache__"}) <= MAX_ENTRIES


def test_core_packages_have_few_imports_between_them() -> None:
    assert sum(map(len, imports_inside(FUNCTIONS / "core").values())) <= MAX_CORE_ARROWS


@pytest.mark.parametrize(("name", "expected"), MAY_IMPORT_INSIDE.items(), ids=MAY_IMPORT_INSIDE)
def test_packages_import_each_other_as_listed(name: str, expected: dict[str, set[str]]) -> None:
    found = imports_inside(FUNCTIONS / name)
    assert {entry: targets for entry, targets in found.items() if targets or entry in expected} == expected


def test_every_package_is_listed() -> None:
    listed = {FUNCTIONS / name / entry for name, entries in MAY_IMPORT_INSIDE.items() for entry in entries}
    assert set(PACKAGES) <= listed | {FUNCTIONS / layer for layer in MAY_IMPORT}


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
