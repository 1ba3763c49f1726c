"""Bars of loops over a loader: on a terminal, where they are asked for, and nowhere else."""

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
    """What a script prints, and what it says on standard error, which is a terminal or is none."""
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
def test_a_bar_on_a_terminal(tmp_path: Path, workers: str) -> None:
    out, said = ran(tmp_path, f', progress="epoch"{workers}', True, "Pictures(7)", "pass")
    assert out == "done 3\n"
    assert "epoch" in said and "4/4" in said


def test_of_what_has_no_length(tmp_path: Path) -> None:
    _, said = ran(tmp_path, ", progress=True", True, "Upwards(7)", "pass")
    assert "4/?" in said


def test_a_loop_that_is_left_leaves_the_terminal_as_it_was(tmp_path: Path) -> None:
    out, said = ran(tmp_path, ", progress=True", True, "Pictures(7)", "if k == 1: break")
    assert out == "done 1\n" and "1/4" in said and "4/4" not in said


@pytest.mark.parametrize(("options", "terminal"), [("", True), (", progress=True", False)])
def test_elsewhere_nothing_is_said(tmp_path: Path, options: str, terminal: bool) -> None:
    assert ran(tmp_path, options, terminal, "Pictures(7)", "pass") == ("done 3\n", "")


def test_the_same_batches(capfd: pytest.CaptureFixture[str]) -> None:
    pictures = cases.Pictures(5)
    found = [y.tolist() for _, y in DataLoader(pictures, 2, progress=True, device="reference")]
    assert found == [y.tolist() for _, y in DataLoader(pictures, 2, device="reference")]
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("wrong", [1, None, 0.5])
def test_what_is_no_text(wrong: Any) -> None:
    with pytest.raises(dt.ArgumentTypeError, match="progress is True, False or a text"):
        DataLoader(cases.Pictures(5), progress=wrong)
