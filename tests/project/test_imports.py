"""Imports point one way, and frameworks are imported only where they are used."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import linnet

SOURCE = Path(linnet.__file__).parent

# Each area imports only from areas above it, or from itself.
LAYERS = (
    {"diagnostics", "version"},
    {"syntax"},
    {"packages"},
    {"dims"},
    {"types"},
    {"ir"},
    {"elaborate"},
    {"api"},
    {"passes"},
    {"stdlib"},
    {"weights"},
    {"backends"},
    {"torch", "jax", "onnx", "native"},
    {"nest"},
    {"serve", "exports", "train", "tools", "cli"},
)
RANK = {area: rank for rank, areas in enumerate(LAYERS) for area in areas}
FRAMEWORKS = {
    "gguf", "huggingface_hub", "jax", "jinja2", "onnx", "onnxruntime", "safetensors", "tokenizers",
    "torch", "transformers",
}  # fmt: skip
# Where a framework may be imported at module level: modules that only their own users import.
MAY_IMPORT = {
    "jax": {"jax"},
    "nest": {"huggingface_hub", "jinja2", "tokenizers"},
    "onnx": {"onnx", "onnxruntime"},
    "torch": {"torch"},
}
ROOT_FILES = {"__init__", "__main__"}


@cache
def modules() -> tuple[tuple[Path, str, ast.Module], ...]:
    return tuple(parsed())


def parsed() -> Iterator[tuple[Path, str, ast.Module]]:
    for path in sorted(SOURCE.rglob("*.py")):
        relative = path.relative_to(SOURCE)
        area = relative.parts[0].removesuffix(".py")
        if area not in ROOT_FILES:
            yield relative, area, ast.parse(path.read_text(encoding="utf-8"))


def imported(node: ast.AST) -> list[str]:
    match node:
        case ast.Import(names):
            return [alias.name for alias in names]
        case ast.ImportFrom(module=str(module), level=0, names=names):
            if module == "linnet":
                return [f"linnet.{alias.name}" for alias in names]
            return [module]
        case _:
            return []


def at_import_time(tree: ast.Module) -> Iterator[ast.AST]:
    """Nodes that run when the module is imported: not those in functions or for type checkers."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                pass
            case ast.If(test=ast.Name("TYPE_CHECKING"), orelse=otherwise):
                waiting.extend(otherwise)
            case _:
                waiting.extend(ast.iter_child_nodes(node))


def test_every_area_has_its_layer() -> None:
    assert {area for _, area, _ in modules()} <= RANK.keys()


def test_imports_point_one_way() -> None:
    wrong = []
    for path, area, tree in modules():
        for node in ast.walk(tree):
            assert not isinstance(node, ast.ImportFrom) or node.level == 0, f"{path}: relative"
            for name in imported(node):
                if not name.startswith("linnet."):
                    continue
                other = name.split(".")[1]
                allowed = other == area or RANK.get(other, -1) < RANK[area]
                if not allowed:
                    wrong.append(f"{path}:{getattr(node, 'lineno', 0)} imports {name}")
    assert not wrong, "\n".join(wrong)


def test_frameworks_are_imported_by_their_own_backend_or_in_functions() -> None:
    wrong = []
    for path, area, tree in modules():
        for node in at_import_time(tree):
            for name in imported(node):
                top = name.split(".")[0]
                if top in FRAMEWORKS and top not in MAY_IMPORT.get(area, set()):
                    wrong.append(f"{path}:{getattr(node, 'lineno', 0)} imports {name}")
    assert not wrong, "\n".join(wrong)


def loaded_by(code: str) -> set[str]:
    """The top-level names of modules a new process holds after running `code`."""
    program = f"import sys\n{code}\nprint(*{{name.split('.')[0] for name in sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    return set(done.stdout.splitlines()[-1].split())


def test_checking_loads_no_framework(tmp_path: Path) -> None:
    source = tmp_path / "toy.linnet"
    source.write_text("module toy\n\npub fn double(x: f32) -> f32 {\n    return x + x\n}\n")
    loaded = loaded_by(
        "from linnet.cli.app import main\n"
        f"assert main(['check', {str(source)!r}]) == 0\n"
        f"assert main(['fmt', '--check', {str(source)!r}]) == 0"
    )
    assert not loaded & (FRAMEWORKS | {"rich"})


def test_import_linnet_is_cheap() -> None:
    assert not loaded_by("import linnet") & (FRAMEWORKS | {"numpy", "click", "rich"})
