"""Rules for tests: each can fail, and only tests marked `timing` read a clock."""

from __future__ import annotations

import ast
import functools
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping

import pytest
from places import TESTS
from sampling import sample
from skips import add_remedy
from slow import SLOW, SLOW_PART, is_left_out
from source_trees import parse_file, statements

KIT = TESTS.parent / "core" / "dovetail" / "testing"
CHILDREN = {"broken_plugins", "children"}  # programs that tests run
FAILS = {"raises", "warns", "fail", "deprecated_call"}  # of pytest
CLOCKS = {"time", "perf_counter", "monotonic", "process_time", "perf_counter_ns", "sleep"}

Function = ast.FunctionDef | ast.AsyncFunctionDef
Modules = Mapping[str, ast.Module]


@functools.cache
def modules() -> Modules:
    """Return the modules of the tests and of the kit by name."""
    paths = [*TESTS.rglob("*.py"), *KIT.glob("*.py")]
    return {
        p.stem: parse_file(p)
        for p in sorted(paths)
        if not CHILDREN & {*p.parts} and p.stem != "__init__"
    }


def functions(tree: ast.AST) -> Iterator[Function]:
    return (n for n in statements(tree) if isinstance(n, Function))


@functools.cache
def can_fail(f: ast.AST) -> bool:
    """Return True if a function has an assertion of its own."""
    for n in ast.walk(f):
        if isinstance(n, ast.Assert):
            return True
        if isinstance(n, ast.Raise) and n.exc and "AssertionError" in ast.unparse(n.exc):
            return True
        if isinstance(n, ast.Call):
            name = getattr(n.func, "attr", getattr(n.func, "id", ""))
            if name in FAILS or name.startswith("assert_"):
                return True
            if any(k.arg == "check" and ast.unparse(k.value) == "True" for k in n.keywords):
                return True  # subprocess.run, of a program that asserts
    return False


class Callees:
    """The functions that a function names: `(module, function)`, and `("", method)`."""

    def __init__(self, trees: Modules) -> None:
        self.of: dict[tuple[str, str], list[Function]] = {}
        self.names: dict[int, set[tuple[str, str]]] = {}
        for module, tree in trees.items():
            classes = [c for c in statements(tree) if isinstance(c, ast.ClassDef)]
            methods = {id(f) for c in classes for f in c.body}
            known = {f.name: (module, f.name) for f in functions(tree)} | imported(tree, trees)
            for f in functions(tree):
                key = ("" if id(f) in methods else module, f.name)
                self.of.setdefault(key, []).append(f)
                self.names[id(f)] = named(f, known, trees)

    def checking(self) -> set[tuple[str, str]]:
        """Return the functions that have an assertion, or name one that does."""
        found = {key for key, fs in self.of.items() if any(map(can_fail, fs))}
        found |= {key for names in self.names.values() for key in names if key[0] == "kit"}
        while more := {
            key
            for key, fs in self.of.items()
            if key not in found and any(self.names[id(f)] & found for f in fs)
        }:
            found |= more
        return found


def imported(tree: ast.Module, trees: Modules) -> dict[str, tuple[str, str]]:
    """Return the imports of a module from other test modules; of a module, ("*", its name).

    A module of the conformance kit, whose functions check, is ("kit", its name).
    """
    found = {}
    for n in statements(tree):
        for alias in n.names if isinstance(n, ast.Import | ast.ImportFrom) else ():
            source = (n.module or "").rpartition(".")[2] if isinstance(n, ast.ImportFrom) else ""
            name = alias.asname or alias.name
            if isinstance(n, ast.ImportFrom) and n.module == "dovetail.testing":
                found[name] = ("kit", alias.name)
            elif source in trees:
                found[name] = (source, alias.name)
            elif alias.name in trees:
                found[name] = ("*", alias.name)
    return found


def named(
    f: Function, known: Mapping[str, tuple[str, str]], trees: Modules
) -> set[tuple[str, str]]:
    """Return the functions of the tests that a function names, called or passed on."""
    found = {known[a.arg] for a in f.args.args if a.arg in known}  # fixtures
    for n in ast.walk(f):
        if isinstance(n, ast.Name):
            found |= {known[n.id]} if n.id in known else set()
        elif isinstance(n, ast.Attribute):
            owner = known.get(n.value.id) if isinstance(n.value, ast.Name) else None
            module = owner[1] if owner and owner[0] == "*" else ""
            found.add((module, n.attr))
    return found


def asserting_nothing(trees: Modules) -> list[str]:
    callees = Callees(trees)
    checking = callees.checking()
    return [
        f"{module}.{f.name}"
        for module, tree in trees.items()
        for f in functions(tree)
        if f.name.startswith("test_") and not can_fail(f) and not callees.names[id(f)] & checking
    ]


def test_test_without_assertions_is_detected() -> None:
    helper = ast.parse("def held(x):\n assert x\ndef run(x):\n held(x)\nclass C:\n def go(self): 1")
    tree = ast.parse(
        "from h import run\n"
        "def test_a():\n assert 1\ndef test_b():\n run(1)\ndef test_c():\n str(held)\n"
        "def test_d():\n with pytest.raises(TypeError):\n  str(1)\ndef test_e(x):\n x.go()\n"
    )
    assert asserting_nothing({"h": helper, "m": tree}) == ["m.test_c", "m.test_e"]


def test_every_test_can_fail() -> None:
    assert asserting_nothing(modules()) == []


def reads_a_clock(f: Function) -> bool:
    """Return True if a function calls a clock of `time`, or sleeps."""
    return any(
        isinstance(n, ast.Call)
        and isinstance(n.func, ast.Attribute)
        and n.func.attr in CLOCKS
        and ast.unparse(n.func.value) == "time"
        for n in ast.walk(f)
    )


def is_timing(f: Function) -> bool:
    return any(ast.unparse(d).startswith("pytest.mark.timing") for d in f.decorator_list)


# These wait, with a deadline, for events without a notification: a file of another process, a
# sleeping thread of a pool; or they check that a plugin that hangs is abandoned in time.
WAIT = {
    "test_diskcache.run_and_kill_writers",
    "test_diskcache.test_two_writers_and_a_kill_leave_whole_files",
    "test_launch.wait_for_sleepers",
    "test_plugins.test_slowly_opening_device_blocks_no_other",
    "test_plugins.test_no_kind_of_broken_plugin_affects_other_devices",
    "test_launch.test_workers_may_use_every_core_after_an_affinity_limit",
    "test_launch.test_thread_that_waited_long_for_a_worker_runs_alone_for_a_while",
}


def test_only_tests_marked_timing_read_clocks() -> None:
    found = {
        f"{module}.{f.name}"
        for module, tree in modules().items()
        if module.startswith("test_")
        for f in functions(tree)
        if reads_a_clock(f) and not is_timing(f)
    }
    assert found == WAIT


@pytest.mark.parametrize(
    ("cases", "part", "part_of_large", "kept"),
    [(1, 48, 192, 1), (48, 48, 192, 1), (49, 48, 192, 2), (192, 48, 192, 4), (700, 48, 192, 4),
     (1921, 48, 192, 11), (1921, 24, 24, 81), (7, 1, 1, 7)],
)  # fmt: skip
def test_sample_has_the_share_that_the_first_line_of_a_run_tells(
    cases: int, part: int, part_of_large: int, kept: int
) -> None:
    found = sample([f"test[{i}]" for i in range(cases)], part, part_of_large)
    assert len({*found}) == len(found) == kept


def test_smaller_sample_is_part_of_a_larger_one() -> None:
    cases = [f"test[{i}]" for i in range(3000)]
    assert {*sample(cases, 48, 192)} < {*sample(cases, 48, 48)} < {*sample(cases, 24, 24)}


def test_slow_tests_of_the_list_exist() -> None:
    shared = "".join(path.read_text() for path in (TESTS / "support").glob("*_cases.py"))
    for test in SLOW:
        path, *_, name = test.split("::")
        text = (TESTS.parent / path).read_text() + shared
        assert f"def {name}(" in text, f"{test}: pytest --part 48 --write-slow"


def test_plain_run_has_a_fixed_share_of_the_slow_tests() -> None:
    kept = [test for test in SLOW if not is_left_out(f"{test}[a case]", SLOW_PART)]
    assert len(SLOW) / SLOW_PART / 2 < len(kept) < len(SLOW) / SLOW_PART * 2
    assert {*kept} < {test for test in SLOW if not is_left_out(test, 2)}
    assert not any(is_left_out(test, 1) for test in SLOW)
    assert not is_left_out("tests/test_tests.py::test_of_another_name", SLOW_PART)


def test_processes_of_tests_may_keep_their_byte_code() -> None:
    assert "PYTHONDONTWRITEBYTECODE" not in os.environ and not sys.dont_write_bytecode


@pytest.mark.parametrize(
    ("reason", "remedy"),
    [
        ("could not import 'torch': No module named 'torch'", "pip install --group peers"),
        ("JAX is one of the peers", "pip install --group peers"),
        ("could not import 'mkdocs': No module named 'mkdocs'", "pip install --group docs"),
        ("could not import 'dovetail_cuda': No module", "pip install -e ./backends/cuda"),
        ("could not import 'shtab': No module named 'shtab'", 'pip install -e ".[test]"'),
        ("Pyright is not installed", "pip install --group checks"),
        ("there is no C++ compiler", "apt install gcc g++"),
        ("pyopencl is not installed", 'pip install -e "./backends/opencl[cpu]"'),
        ("polars is not installed", "pip install polars pyarrow"),
        (
            "got empty parameter set for (device)",
            'pip install -e "./backends/opencl[cpu]"',
        ),
        ("no OpenCL device: dovetail-opencl[cpu]", 'pip install -e "./backends/opencl[cpu]"'),
    ],
)
def test_reason_of_a_skip_says_what_helps(reason: str, remedy: str) -> None:
    assert add_remedy(f"Skipped: {reason}") == f"Skipped: {reason}; {remedy}"


@pytest.mark.parametrize(
    "reason",
    ["torch is not installed: pip install torch", "this CPU has no AVX-512", "no fork here"],
)
def test_reason_that_says_enough_is_kept(reason: str) -> None:
    assert add_remedy(reason) == reason


def test_sample_of_exhaustive_tests_is_not_empty() -> None:
    path = str(TESTS / "testing" / "test_layout_kit_catches.py")
    options = ["--co", "-q", "-n", "0", "--part", "16", "-m", "exhaustive", path]
    command = [sys.executable, "-m", "pytest", *options]
    found = subprocess.run(command, capture_output=True, text=True, check=True, cwd=TESTS.parent)
    assert "test_layout_kit_catches.py::" in found.stdout
