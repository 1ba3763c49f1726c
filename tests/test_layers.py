"""What may import what, and what `import dovetail` may cost."""

from __future__ import annotations

import ast
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CORE = ROOT / "core" / "dovetail"
OUTSIDE = sorted(
    p.relative_to(ROOT).as_posix()
    for folder in ("sparse", "backends")
    for p in (ROOT / folder).rglob("*.py")
    if "build" not in p.parts
)
DEVICE_TYPES = {"cpu", "opencl", "cuda"}


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), str(path))


def imports(tree: ast.AST, package: str) -> Iterator[str]:
    """Full names of the modules that `tree`, a module of `package`, imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(filter(None, (package if node.level else "", node.module)))
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def core_modules() -> dict[str, ast.Module]:
    return {p.stem: parsed(p) for p in sorted(CORE.glob("*.py"))}


def core_graph() -> dict[str, set[str]]:
    trees = core_modules()
    named = {
        name: {i.removeprefix("dovetail.").split(".")[0] for i in imports(tree, "dovetail")}
        for name, tree in trees.items()
    }
    return {name: {i for i in used if i in trees} for name, used in named.items()}


def cycle(graph: dict[str, set[str]]) -> list[str]:
    """The names along a cycle; empty if there is none."""
    done: set[str] = set()

    def visit(name: str, path: list[str]) -> list[str]:
        if name in path:
            return [*path[path.index(name) :], name]
        if name in done:
            return []
        for other in sorted(graph[name]):
            if found := visit(other, [*path, name]):
                return found
        done.add(name)
        return []

    return next((found for name in graph if (found := visit(name, []))), [])


def test_the_core_has_no_import_cycle() -> None:
    assert cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    graph = core_graph()
    assert "errors" in graph["device"], "imports are not seen at all"
    assert cycle(graph) == []


def hidden_imports(tree: ast.Module, package: str) -> list[str]:
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    names = {name for f in functions for name in imports(f, package)}
    return sorted(n for n in names if n.split(".")[0].startswith("dovetail"))


def test_no_function_of_the_core_imports_dovetail() -> None:
    assert hidden_imports(ast.parse("def f():\n    from .x import y"), "dovetail")
    found = {name: hidden_imports(tree, "dovetail") for name, tree in core_modules().items()}
    assert {name: hidden for name, hidden in found.items() if hidden} == {}


@pytest.mark.parametrize("path", OUTSIDE)
def test_backends_and_sparse_use_only_the_extension_interface(path: str) -> None:
    own = Path(path).parent.name
    wrong = [
        name
        for name in imports(parsed(ROOT / path), own)
        if name.split(".")[0].startswith("dovetail")
        and name.split(".")[0] != own
        and not name.startswith("dovetail.extend")
        and name != "dovetail"
    ]
    assert wrong == []
    assert hidden_imports(parsed(ROOT / path), own) == []


def branches(tree: ast.AST) -> list[str]:
    """Device types that a comparison, a `match` or a prefix test names."""
    suspects: list[ast.AST] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare | ast.MatchValue):
            suspects.append(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            suspects += node.args if node.func.attr in ("startswith", "endswith") else []
    constants = (n for s in suspects for n in ast.walk(s) if isinstance(n, ast.Constant))
    return [str(c.value) for c in constants if c.value in DEVICE_TYPES]


@pytest.mark.parametrize(
    "code", ['d.type == "cpu"', 't in ("x", "cuda")', 't.startswith("opencl")']
)
def test_a_branch_on_a_device_type_is_seen(code: str) -> None:
    assert branches(ast.parse(code))


def test_the_core_has_no_branch_on_a_device_type() -> None:
    found = {name: branches(tree) for name, tree in core_modules().items()}
    assert {name: types for name, types in found.items() if types} == {}


def test_the_default_device_is_spelt_in_one_place() -> None:
    spelt = [
        name
        for name in ("device", "memory", "plugins", "streams", "run", "tensor", "fuse", "ops")
        if (tree := core_modules().get(name)) is not None
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and node.value in DEVICE_TYPES
    ]
    assert spelt == ["device"]


def python(code: str, cache: Path) -> str:
    """What `code` prints in a fresh interpreter that keeps its byte code under `cache`."""
    path = os.pathsep.join([str(ROOT / "core"), str(ROOT / "sparse")])
    environ = {**os.environ, "PYTHONPATH": path, "PYTHONPYCACHEPREFIX": str(cache)}
    environ.pop("PYTHONDONTWRITEBYTECODE", None)
    return subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True
    ).stdout


def test_importing_dovetail_loads_no_backend_and_nothing_heavy(tmp_path: Path) -> None:
    code = "import sys; before = {*sys.modules}; import dovetail; print(*{*sys.modules} - before)"
    loaded = python(code, tmp_path).split()  # less what .pth files of other packages load
    heavy = "llvmlite pyopencl cuda rich torch jax matplotlib scipy sklearn importlib.metadata"
    unwanted = {*heavy.split(), "dovetail_cpu_llvm", "dovetail_opencl", "dovetail_cuda"}
    assert "dovetail" in loaded
    assert sorted(unwanted & set(loaded)) == []


def test_importing_dovetail_is_quick(tmp_path: Path) -> None:
    """40 ms beyond NumPy is promised, on an idle machine: about half of what NumPy itself takes. A
    busy one slows both.
    """
    code = (
        "import time; t = time.process_time(); import numpy; n = time.process_time();"
        "import dovetail; print((time.process_time() - n) / (n - t))"
    )
    python(code, tmp_path)  # writes the byte code
    assert statistics.median(float(python(code, tmp_path)) for _ in range(7)) < 0.8
