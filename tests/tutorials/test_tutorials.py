"""The tutorials run in fresh kernels, are what their sources say, are small, and show something."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from installed import INSTALLED

FOLDER = Path(__file__).parents[2] / "docs" / "tutorials"
SOURCES = sorted(p.stem for p in (FOLDER / "sources").glob("*.py"))
NEEDS = {"03_digits": "sklearn", "08_out_of_core": "dask"}
LARGEST = 300 * 1024  # bytes of a notebook with its outputs

for package in ("nbclient", "nbformat", "ipykernel", "matplotlib"):
    pytest.importorskip(package)

sys.path.insert(0, str(FOLDER))
import notebooks  # noqa: E402  # beside the tutorials

tutorial = pytest.mark.parametrize("name", SOURCES)


def outputs(book: Any) -> list[Mapping[str, Any]]:
    return [o for cell in book.cells for o in cell.get("outputs", [])]


def test_there_are_eight_and_no_others() -> None:
    assert len(SOURCES) == 8
    assert sorted(p.stem for p in FOLDER.glob("*.ipynb")) == SOURCES == notebooks.names()


@pytest.mark.filterwarnings("default")  # of the machinery of notebooks, not of dovetail
@pytest.mark.skipif("cpu" not in INSTALLED, reason="on the interpreter they take minutes")
@tutorial
def test_runs_from_top_to_bottom(name: str) -> None:
    pytest.importorskip(NEEDS.get(name, "matplotlib"))
    if name == "07_your_own_backend" and not any(map(find_compiler, ("cc", "gcc", "clang"))):
        pytest.skip("there is no C compiler here: install gcc or clang")
    if name == "08_out_of_core" and taken_for_sparse():
        pytest.skip("Dask would take the folder `sparse` of the checkout for a package")
    done = notebooks.run(
        notebooks.notebook(name)
    )  # a cell that fails, or warns as an error, raises
    assert all(o["output_type"] != "error" for o in outputs(done))
    before, after = (len(outputs(book)) for book in (notebooks.stored(name), done))
    assert before == after, "python docs/tutorials/notebooks.py writes them again"


@tutorial
def test_on_disk_is_what_the_source_says(name: str) -> None:
    book = notebooks.stored(name)
    assert notebooks.texts(book) == notebooks.texts(notebooks.notebook(name))
    assert (FOLDER / f"{name}.ipynb").stat().st_size < LARGEST


@tutorial
def test_shows_something_and_says_what_to_read_next(name: str) -> None:
    book = notebooks.stored(name)
    seen = {kind for o in outputs(book) for kind in o.get("data", {})}
    assert {"image/png", "text/html"} & seen
    last = book.cells[-1].source
    assert "## What to read next" in last
    for link in re.findall(r"\]\(([^)]+)\)", last):
        assert (FOLDER / link).exists(), link


@tutorial
def test_names_no_place_of_the_machine_that_wrote_it(name: str) -> None:
    assert not re.search(r"/(home|root|opt|tmp|Users)/", (FOLDER / f"{name}.ipynb").read_text())


def find_compiler(name: str) -> bool:
    return any((Path(p) / name).exists() for p in os.environ.get("PATH", "").split(os.pathsep))


def taken_for_sparse() -> bool:
    found = find_spec("sparse") if sys.modules.get("sparse", True) else None
    return found is not None and found.origin is None
