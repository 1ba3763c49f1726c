"""The conformance kit shows a progress bar on a terminal, and pytest's dots elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-m", "dovetail", "test-backend", "reference", "-k", "test_allocator"]
ESCAPE = "\x1b["


def on_a_terminal(*more: str, folder: Path) -> tuple[int, str]:
    """Return the exit status of a command, and its whole output to a terminal."""
    pty = pytest.importorskip("pty", reason="there are pseudo-terminals where there is Unix")
    ours, theirs = pty.openpty()
    environ = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    for name in ("NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        environ.pop(name, None)
    with subprocess.Popen(
        [*COMMAND, *more], stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder, env=environ
    ) as child:
        os.close(theirs)
        written = b""
        try:
            while part := os.read(ours, 4096):
                written += part
        except OSError:  # Linux raises this when the last writer has closed
            pass
    os.close(ours)
    return child.returncode, written.decode(errors="replace")


@pytest.mark.parametrize("more", [(), ("-n", "1")], ids=["alone", "in a worker"])
def test_terminal_shows_a_progress_bar(more: tuple[str, ...], tmp_path: Path) -> None:
    if more:
        pytest.importorskip("xdist")
    status, said = on_a_terminal(*more, folder=tmp_path)
    assert status == 0 and "conformance of reference:0" in said, said
    assert "cases " in said and "\u2501" in said and ESCAPE in said, said
    passed = int(said.partition(" passed")[0].split()[-1].rpartition("m")[2])
    assert passed > 1 and f"/{passed}\x1b" in said
    assert ".." not in said.replace("...", ""), said


def test_verbose_terminal_shows_test_names(tmp_path: Path) -> None:
    status, said = on_a_terminal("-v", folder=tmp_path)
    assert status == 0 and "\u2501" not in said and ".." in said, said


def test_other_output_has_dots_and_no_escapes(tmp_path: Path) -> None:
    done = subprocess.run(COMMAND, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0 and ".." in done.stdout and " passed" in done.stdout
    assert ESCAPE not in done.stdout + done.stderr and "\u2501" not in done.stdout
