"""The variables DOVETAIL_*: an invalid value is named once in a warning, and work continues."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from dovetail import DovetailWarning, environment
from dovetail.device_class import device
from dovetail.plugins.registry import DeviceRegistry

ROOT = Path(__file__).parent.parent
NONSENSE = (
    "abc", "", "-1", "1e400", "nan", " 4 ", "0x10", "7" * 5000, "x" * 5000, "ünïcödé \U0001f40d",
    "99999999999999999999", "1.5", ";", "\n", "a,b", "::", "\udcff",
)  # fmt: skip
# variable -> the valid ones of these values
SENSE = {
    "DOVETAIL_DEFAULT_DEVICE": {
        "",
        "abc",
        "nan",
    },  # a missing device has an error of its own
    "DOVETAIL_NUM_THREADS": {"", " 4 "},
    "DOVETAIL_CACHE_DIR": {v for v in NONSENSE if len(v) < 5000},  # any other value names a folder
    "DOVETAIL_CACHE_MIB": {"", " 4 ", "1.5"},
    "DOVETAIL_BACKENDS": {"", "\n"},
    "DOVETAIL_STRICT_PLUGINS": {""},
    "DOVETAIL_PROBE_SECONDS": {"", " 4 ", "1.5"},
    "DOVETAIL_JUNK": {""},
    "DOVETAIL_PURE": {*NONSENSE},  # read first: see tests/test_compiled.py
    "DOVETAIL_TRACE": {"", "\n"},
    "DOVETAIL_VENDOR_PRODUCTS": {""},
    "DOVETAIL_CPU_NUMA": {""},
    "DOVETAIL_CPU_TARGET": {""},
    "DOVETAIL_CPU_THREADS": {*NONSENSE},  # no such setting: it is never read
}
GONE = {"DOVETAIL_DEFAULT_DEVICE": {"abc", "nan"}, "DOVETAIL_BACKENDS": {*NONSENSE} - {"", "\n"}}

# A batch in one process: each case in a fork of it, so that each starts with nothing read.
BATCH = """
import json, os, sys, warnings
from contextlib import suppress
import numpy
import dovetail as dt  # which reads no variable
with suppress(ImportError):
    import llvmlite.binding
for variable, value in json.loads(sys.stdin.read()):
    reader, writer = os.pipe()
    if not os.fork():
        os.environ[variable] = value
        answer = {}
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                dt.empty(3)  # alone reads DOVETAIL_JUNK
                answer["sum"] = dt.ones(3).sum().item()
                answer["again"] = dt.ones(3).sum().item()
            except Exception as error:
                answer["error"] = [isinstance(error, dt.DovetailError), str(error)]
        ours = [w for w in said if issubclass(w.category, dt.DovetailWarning)]
        answer["said"] = [str(w.message) for w in ours]
        with os.fdopen(writer, "w") as f:
            json.dump(answer, f)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as f:
        print(f.read() or "null", flush=True)
    os.wait()
"""


def answers(cases: list[tuple[str, str]], folder: Path) -> list[Any]:
    """Return the result and the warnings of a process for each variable and value."""
    path = os.pathsep.join(str(ROOT / p) for p in ("core", "backends/cpu_llvm"))
    path = os.pathsep.join(filter(None, [path, os.environ.get("PYTHONPATH")]))
    clear = {k: v for k, v in os.environ.items() if not k.startswith("DOVETAIL_")}
    done = subprocess.run(
        [sys.executable, "-c", BATCH], input=json.dumps(cases), cwd=folder, text=True,
        env={**clear, "PYTHONPATH": path, "XDG_CACHE_HOME": str(folder)},
        capture_output=True, timeout=280, check=True,
    )  # fmt: skip
    return [json.loads(line) for line in done.stdout.splitlines()]


def settle(cases: list[tuple[str, str]], folder: Path) -> None:
    found = answers(cases, folder)
    assert len(found) == len(cases)
    for (variable, value), answer in zip(cases, found, strict=True):
        case = f"{variable}={value[:50]!r}: {answer}"
        assert answer is not None, f"{case}: the process ended"
        if value in GONE.get(variable, ()):
            ours, text = answer["error"]
            assert ours and variable in text, case
        else:
            assert answer.get("sum") == answer.get("again") == 3.0, case
        if value in SENSE[variable]:
            assert answer["said"] == [], case
        else:
            [line] = answer["said"]
            assert line.startswith(variable) or variable in line, case
            assert "\n" not in line and len(line) < 400, case
            assert value[:20].encode("ascii", "backslashreplace").decode() in line or "\n" in value


pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
ALL = list(itertools.product(SENSE, NONSENSE))


def test_sampled_invalid_values_of_variables_warn_once(
    tmp_path: Path, thinned: Callable[..., Any]
) -> None:
    settle(thinned(ALL[::7], 2), tmp_path)


def test_import_reads_no_variable(tmp_path: Path) -> None:
    nonsense = dict.fromkeys({*SENSE} - {"DOVETAIL_PURE"}, "-1")  # which names the import
    command = [
        sys.executable,
        "-W",
        "error",
        "-c",
        "import dovetail, dovetail.commands.cli; print('well')",
    ]
    done = subprocess.run(
        command, env={**os.environ, **nonsense}, capture_output=True, text=True, cwd=tmp_path
    )
    assert (done.stdout, done.stderr) == ("well\n", "")


@pytest.mark.exhaustive
@pytest.mark.parametrize("variable", SENSE)
def test_all_invalid_values_of_variables_warn_once(variable: str, tmp_path: Path) -> None:
    settle([(variable, value) for value in NONSENSE], tmp_path)


def test_every_variable_is_documented_and_tested() -> None:
    """A quoted name in the sources is one that is read, or set for others."""
    inner = {"DOVETAIL_BENCH"}  # from one benchmark process to the next
    sources = [p for d in ("core", "backends") for p in (ROOT / d).rglob("*.py")]
    texts = [p.read_text() for p in sources if "build" not in p.parts]
    read = {name for text in texts for name in re.findall(r'"(DOVETAIL_[A-Z_]+[A-Z])"', text)}
    assert "DOVETAIL_NUM_THREADS" in read
    assert read - inner <= {*SENSE}
    assert all(name in (environment.__doc__ or "") for name in read - inner)


@pytest.fixture
def warnings_seen(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[warnings.WarningMessage]]:
    """Collect the warnings during a test."""
    monkeypatch.setattr(environment, "_issued_warnings", set())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DovetailWarning)
        yield caught


@pytest.mark.parametrize(
    ("value", "found"),
    [("3", 3), (" 4 ", 4), ("1e1", 10), ("5.0", 5), ("5.5", 7), ("11", 7), ("-1", 7), ("x", 7)],
)
def test_whole_number_variables_are_validated(
    value: str,
    found: int,
    warnings_seen: list[warnings.WarningMessage],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DOVETAIL_SOME", value)
    assert environment.read_int("DOVETAIL_SOME", 7, 0, 10) == found
    assert len(warnings_seen) == (found == 7)


def test_long_invalid_value_is_named_once_and_abbreviated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "_issued_warnings", set())
    monkeypatch.setenv("DOVETAIL_SOME", "é" * 1000)
    with pytest.warns(
        DovetailWarning, match=r"DOVETAIL_SOME must be .*, got '\\xe9.*\.\.\.'; using"
    ) as caught:
        for _ in range(3):
            assert environment.read_float("DOVETAIL_SOME", 7, 0, 10) == 7
    assert len(caught) == 1 and len(str(caught[0].message)) < 400


@pytest.mark.parametrize("value", ["1", "TRUE", " yes", "on", "0", "false", "No", "off", ""])
def test_flag_variables_accept_common_spellings(
    value: str, warnings_seen: list[warnings.WarningMessage]
) -> None:
    on = value.strip().lower() in ("1", "true", "yes", "on")
    assert (
        environment.read_flag("DOVETAIL_SOME", {"DOVETAIL_SOME": value}) is on and not warnings_seen
    )


def test_list_of_unknown_backends_stays_in_force(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(environment, "_issued_warnings", set())
    registry = DeviceRegistry(environ={"DOVETAIL_BACKENDS": "cup"})
    with pytest.warns(
        DovetailWarning, match=r"DOVETAIL_BACKENDS must be .*reference.*, got 'cup'"
    ) as caught:
        allowed = {n for n, r in registry.records().items() if r.state.value != "blocked"}
    assert allowed == {"reference"} and len(caught) == 1
    assert registry.open(device("reference"))
