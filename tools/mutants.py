"""Test random mutants of the core, and print those that no test detects.

    python tools/mutants.py [--seed S] [--count N] [--packages fusion engine memory] [--jobs 2]
                          [--limit SECONDS] [--out mutants.json]

A mutant is one change in a copy of the tree. The tool runs the tests of the mutant's package, tests
that use the package most, random programs and a sample of the conformance kit, until one fails. It
prints each survivor with its change. `tools/equivalent_mutants.txt` lists mutants without a visible
effect, one a line: `file: line: before -> after: reason`.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).resolve().parent.parent
EQUIVALENT = ROOT / "tools" / "equivalent_mutants.txt"
MUTANT_SECONDS_MAX = 300.0  # for all commands; a slower mutant counts as caught
FOLDERS = ("core", "backends", "tests")
PATHS = (
    "core",
    "backends/cpu_llvm",
    "backends/opencl",
    "backends/cuda",
    "backends/vulkan",
    "backends/webgpu",
    "tests",
)
# Further tests for the mutants of a package, the most sensitive first.
EXTRA_TESTS = {
    "fusion": ["tests/insight", "tests/engine/test_evaluate.py"],
    "engine": ["tests/fusion/test_fusion.py", "tests/tensor"],
    "memory": ["tests/backend/test_streams.py", "tests/functions/test_transfer.py"],
    "graph": ["tests/engine", "tests/fusion/test_fusion.py", "tests/autograd/test_autograd.py"],
    "kernel": ["tests/fusion/test_fusion.py", "tests/backend/test_reference.py"],
    "autograd": ["tests/functions/test_statistics.py"],
    "tensor": ["tests/functions"],
}
COMMON_TESTS = [
    "tests/test_random_programs.py",
    "tests/test_namespace.py::test_dir_of_modules_has_only_public_names",
]
PYTEST = ["-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider", "--tb=line"]
KIT = ["-m", "dovetail.commands.cli", "test-backend", "reference", "--sample", "40", "-x"]


@dataclass
class Mutant:
    """One change, and the outcome of the tests."""

    path: str
    line: int
    text: str  # of the line
    before: str
    after: str
    source: str  # the whole file, changed
    outcome: str = ""  # "caught", "survived", "equivalent"
    by: str = ""
    seconds: float = 0.0

    @property
    def change(self) -> str:
        """Return the change as one line of text, the key of `equivalent_mutants.txt`."""
        return f"{self.path}: {self.text}: {self.before} -> {self.after}"


# --- generation -----------------------------------------------------------------------------------

OPPOSITE: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.And: ast.Or, ast.Or: ast.And, ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
}  # fmt: skip


def node_mutations(node: ast.AST) -> Iterator[Callable[[], ast.AST | None]]:
    """Yield functions that each return a replacement of the node."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in OPPOSITE:
        yield lambda: _replace_fields(node, ops=[OPPOSITE[type(node.ops[0])](), *node.ops[1:]])
    if isinstance(node, ast.BoolOp | ast.BinOp) and type(node.op) in OPPOSITE:
        yield lambda: _replace_fields(node, op=OPPOSITE[type(node.op)]())
    if isinstance(node, ast.BoolOp):
        yield (
            lambda: (
                _replace_fields(node, values=node.values[:-1])
                if len(node.values) > 2
                else node.values[0]
            )
        )
    if isinstance(node, ast.Constant) and type(node.value) is int:
        for by in (1, -1):
            yield lambda by=by: ast.Constant(node.value + by)  # type: ignore[misc]  # a default
    if isinstance(node, ast.Constant) and type(node.value) is bool:
        yield lambda: ast.Constant(not node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield lambda: node.operand
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        yield lambda: _replace_fields(node, test=ast.UnaryOp(ast.Not(), node.test))
    if isinstance(node, ast.Call) and len(node.args) > 1:
        yield lambda: _replace_fields(node, args=node.args[:-1])
        yield lambda: _replace_fields(node, args=[node.args[1], node.args[0], *node.args[2:]])
    if isinstance(node, ast.Call) and node.keywords and node.keywords[-1].arg != "strict":
        yield lambda: _replace_fields(node, keywords=node.keywords[:-1])
    if isinstance(node, ast.Return) and ast.unparse(node) not in ("return", "return None"):
        yield lambda: _replace_fields(node, value=ast.Constant(None))
    if isinstance(node, ast.Expr | ast.AugAssign | ast.Delete | ast.Raise) and not _text(node):
        yield lambda: ast.Pass()
    if isinstance(node, ast.Continue | ast.Break):
        yield lambda: ast.Pass()


def _replace_fields(node: ast.AST, **fields: object) -> ast.AST:
    return type(node)(**{**dict(ast.iter_fields(node)), **fields})


def _text(node: ast.AST) -> bool:
    """Return True if a statement is a docstring."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def mutable_nodes(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the nodes to mutate: no annotations, docstrings, error messages or `strict`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield from _descendants(node)


def _descendants(node: ast.AST) -> Iterator[ast.AST]:
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_params", "msg", "exc"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.keyword) and child.arg == "strict":
                continue
            if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr | ast.Assert):
                yield child
                yield from _descendants(child)


def draw_mutants(packages: Sequence[str], seed: int, count: int) -> list[Mutant]:
    """Return `count` mutants, sampled uniformly from all mutations of the packages."""
    rng = random.Random(seed)
    sites = []
    for package in packages:
        for path in sorted((ROOT / "core" / "dovetail" / package).rglob("*.py")):
            tree = ast.parse(path.read_text())
            for k, node in enumerate(mutable_nodes(tree)):
                sites += [(path, k, way) for way in range(len(list(node_mutations(node))))]
    return [make_mutant(*site) for site in rng.sample(sites, min(count, len(sites)))]


def make_mutant(path: Path, k: int, way: int) -> Mutant:
    """Return the mutant that applies one mutation to the k-th mutable node of a file."""
    text = path.read_text()
    tree = ast.parse(text)
    node = list(mutable_nodes(tree))[k]
    new = list(node_mutations(node))[way]()
    assert new is not None and isinstance(node, ast.expr | ast.stmt)
    ast.copy_location(new, node)
    before = ast.unparse(node).splitlines()[0]
    after = ast.unparse(ast.fix_missing_locations(new)).splitlines()[0]
    _NodeReplacer(node, new).visit(tree)
    source = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
    line = text.splitlines()[node.lineno - 1].strip()
    return Mutant(path.relative_to(ROOT).as_posix(), node.lineno, line, before, after, source)


class _NodeReplacer(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        """Return the new node for the old one, and visit the children of any other."""
        return self.new if node is self.old else self.generic_visit(node)


# --- running the tests ----------------------------------------------------------------------------


def commands(package: str) -> list[list[str]]:
    """Return the commands that test the mutants of a package, in order."""
    own = [f"tests/{package}"] if (ROOT / "tests" / package).exists() else []
    own_commands = [[*PYTEST, *own]] if own else []
    return [*own_commands, [*PYTEST, *EXTRA_TESTS.get(package, []), *COMMON_TESTS], KIT]


def judge(mutant: Mutant, tree: Path, limit: float) -> Mutant:
    """Test a mutant in a copy of the tree, restore the copy, and return the mutant."""
    begun, target = time.monotonic(), tree / mutant.path
    original = target.read_text()
    target.write_text(mutant.source)
    try:
        package = Path(mutant.path).parts[2]
        mutant.outcome, mutant.by = run_tests(commands(package), tree, begun + limit)
    finally:
        target.write_text(original)
    mutant.seconds = round(time.monotonic() - begun, 1)
    if mutant.outcome == "survived" and mutant.change in load_equivalent():
        mutant.outcome = "equivalent"
    return mutant


def run_tests(todo: Sequence[Sequence[str]], tree: Path, end: float) -> tuple[str, str]:
    """Return ("caught", the failure) if a command fails, else ("survived", "")."""
    paths = os.pathsep.join(str(tree / p) for p in PATHS)
    with tempfile.TemporaryDirectory() as cache:  # the kernels of a mutant must not stay cached
        env = {
            **os.environ, "PYTHONPATH": paths, "DOVETAIL_CACHE_DIR": cache, "DOVETAIL_PURE": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
        }  # fmt: skip
        for command in todo:
            try:
                result = subprocess.run(
                    [sys.executable, *command], cwd=tree, env=env, capture_output=True, text=True,
                    timeout=max(1.0, end - time.monotonic()), check=False,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                return "caught", f"no end: {command[-1]}"
            if result.returncode:
                failures = [
                    line for line in result.stdout.splitlines() if line.startswith("FAILED")
                ]
                return "caught", (failures or result.stdout.splitlines() or ["no output"])[-1][:160]
    return "survived", ""


def load_equivalent() -> set[str]:
    """Return the changes that are known to have no visible effect."""
    lines = EQUIVALENT.read_text().splitlines() if EQUIVALENT.exists() else []
    return {line.rpartition(": ")[0] for line in lines if line and not line.startswith("#")}


def main() -> int:
    """Test the mutants; return 1 if one survived that is not known to be equivalent."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--packages", nargs="+", default=["fusion", "engine", "memory"])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--limit", type=float, default=MUTANT_SECONDS_MAX, help="seconds for each mutant"
    )
    parser.add_argument("--out", type=Path, default=Path("mutants.json"))
    args = parser.parse_args()
    candidates = draw_mutants(args.packages, args.seed, args.count)
    with tempfile.TemporaryDirectory() as work, ThreadPoolExecutor(args.jobs) as pool:
        trees: SimpleQueue[Path] = SimpleQueue()
        for k in range(args.jobs):
            trees.put(copy_tree(Path(work) / str(k)))
        unchanged = check_unchanged(trees, args.packages, 2 * args.limit)
        if unchanged:
            print(f"the tree itself fails, so nothing can be said: {unchanged}")
            return 2

        def one(mutant: Mutant) -> Mutant:
            tree = trees.get()
            try:
                return print_mutant(judge(mutant, tree, args.limit))
            finally:
                trees.put(tree)

        judged_mutants = list(pool.map(one, candidates))
    args.out.write_text(
        json.dumps([{**asdict(m), "source": ""} for m in judged_mutants], indent=2) + "\n"
    )
    survived = [m for m in judged_mutants if m.outcome == "survived"]
    counts = {
        o: sum(m.outcome == o for m in judged_mutants) for o in ("caught", "survived", "equivalent")
    }
    print(f"{len(judged_mutants)} mutants, seed {args.seed}: {counts}")
    return 1 if survived else 0


def copy_tree(tree: Path) -> Path:
    """Copy the sources, tests and docs into a folder and return it."""
    for folder in FOLDERS:
        ignored = shutil.ignore_patterns("__pycache__", "build", "*.egg-info")
        shutil.copytree(ROOT / folder, tree / folder, ignore=ignored)
    for file in (*ROOT.glob("*.md"), ROOT / "pyproject.toml"):
        shutil.copy(file, tree)
    shutil.copytree(ROOT / "docs", tree / "docs")
    return tree


def check_unchanged(trees: SimpleQueue[Path], packages: Sequence[str], limit: float) -> str:
    """Return the first failure of the unchanged tree, or an empty string."""
    tree = trees.get()
    try:
        for package in packages:
            outcome, by = run_tests(commands(package), tree, time.monotonic() + limit)
            if outcome != "survived":
                return by
        return ""
    finally:
        trees.put(tree)


def print_mutant(mutant: Mutant) -> Mutant:
    """Print a line about the mutant and return the mutant."""
    print(f"{mutant.outcome:10} {mutant.seconds:6.1f} s  {mutant.path}:{mutant.line}", end="  ")
    print(f"[{mutant.text}]  {mutant.before}  ->  {mutant.after}   {mutant.by}", flush=True)
    return mutant


if __name__ == "__main__":
    sys.exit(main())
