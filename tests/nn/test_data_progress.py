"""Progress bars of loops over a loader: only on a terminal and on request."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import dovetail as dt
import loader_cases as cases
import pytest
from dovetail.data import DataLoader

pytestmark = pytest.mark.timeout(120)
SCRIPT = """
import dovetail as dt
import loader_cases as cases

if __name__ == "__main__":
    dt.set_default_device("reference")
    loader = dt.data.DataLoader(cases.{data}, 2{options})
    for k, batch in enumerate(loader):
        {body}
    print("done", k)
"""


def ran(tmp_path: Path, options: str, terminal: bool, data: str, body: str) -> tuple[str, str]:
    """Return the output of a script, and its standard error, which may be a terminal."""
    pty = pytest.importorskip("pty")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(options=options, data=data, body=body))
    here, there = pty.openpty() if terminal else os.pipe()
    names = ("PYTHONPATH", "PATH", "HOME", "DOVETAIL_CACHE_DIR")
    kept = {k: v for k, v in os.environ.items() if k in names}
    paths = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    process = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=there, text=True,
        env={**kept, "PYTHONPATH": paths, "TERM": "xterm", "COLUMNS": "100"},
    )  # fmt: skip
    os.close(there)
    said = b""
    try:
        while part := os.read(here, 1 << 16):
            said += part
    except OSError:  # how a terminal ends
        pass
    finally:
        os.close(here)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0, said.decode()
    return out, re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", said.decode())


@pytest.mark.parametrize("workers", ["", ", num_workers=1"])
def test_bar_is_shown_on_a_terminal(tmp_path: Path, workers: str) -> None:
    out, said = ran(tmp_path, f', progress="epoch"{workers}', True, "Pictures(7)", "pass")
    assert out == "done 3\n"
    assert "epoch" in said and "4/4" in said


def test_bar_without_a_length_shows_the_count(tmp_path: Path) -> None:
    _, said = ran(tmp_path, ", progress=True", True, "Upwards(7)", "pass")
    assert "4/?" in said


def test_loop_that_breaks_restores_the_terminal(tmp_path: Path) -> None:
    out, said = ran(tmp_path, ", progress=True", True, "Pictures(7)", "if k == 1: break")
    assert out == "done 1\n" and "1/4" in said and "4/4" not in said


@pytest.mark.parametrize(("options", "terminal"), [("", True), (", progress=True", False)])
def test_no_bar_without_a_terminal_or_request(tmp_path: Path, options: str, terminal: bool) -> None:
    assert ran(tmp_path, options, terminal, "Pictures(7)", "pass") == ("done 3\n", "")


def test_batches_are_the_same_with_a_bar(capfd: pytest.CaptureFixture[str]) -> None:
    pictures = cases.Pictures(5)
    found = [y.tolist() for _, y in DataLoader(pictures, 2, progress=True, device="reference")]
    assert found == [y.tolist() for _, y in DataLoader(pictures, 2, device="reference")]
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("wrong", [1, None, 0.5])
def test_invalid_progress_argument_raises(wrong: Any) -> None:
    with pytest.raises(dt.ArgumentTypeError, match="progress must be True, False or a str"):
        DataLoader(cases.Pictures(5), progress=wrong)
