"""The tutorials run in fresh kernels, equal their sources, are small, and have output."""

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
# Parts that differ between runs or machines: colors, addresses, times, compressed pixels.
CHANGING = re.compile(
    r"""\x1b\[[0-9;]*m | \b0x[0-9a-f]+ | \b[\d.]+\ (?:s|ms|us|ns)\b | \bdigest\ [0-9a-f]+
        | \(C\ on\ \w+\) | base64,[^"]+ | [ ]+(?=\[100%\])""",
    re.VERBOSE,
)

for package in ("nbclient", "nbformat", "ipykernel", "matplotlib"):
    pytest.importorskip(package)

sys.path.insert(0, str(FOLDER))
import nbformat  # noqa: E402
import notebooks  # noqa: E402  # beside the tutorials

tutorial = pytest.mark.parametrize("name", SOURCES)


def outputs(book: Any) -> list[Mapping[str, Any]]:
    return [o for cell in book.cells for o in cell.get("outputs", [])]


Shown = tuple[dict[str, str], list[tuple[str, ...]]]


def shown(cell: Mapping[str, Any]) -> Shown:
    """Return a cell's output: texts by stream, and its other outputs, as kinds and texts.

    A stream is one text: the kernel sends it in parts that depend on timing.
    """
    texts, others = dict[str, str](), list[tuple[str, ...]]()
    for o in cell.get("outputs", []):
        if o["output_type"] == "stream":
            texts[o["name"]] = texts.get(o["name"], "") + o["text"]
        else:
            data = sorted(o.get("data", {}).items())
            said = [CHANGING.sub("~", v) for k, v in data if k.startswith("text/")]
            others.append((o["output_type"], *[k for k, _ in data], *said))
    return {name: CHANGING.sub("~", text) for name, text in texts.items()}, others


def differing(before: Any, after: Any) -> dict[str, tuple[Shown, Shown]]:
    """Return the cells, by id, whose outputs differ between two notebooks."""
    pairs = zip(before.cells, after.cells, strict=True)
    found = {a["id"]: (shown(a), shown(b)) for a, b in pairs}
    return {name: (a, b) for name, (a, b) in found.items() if a != b}


def test_there_are_eight_tutorials_and_no_others() -> None:
    assert len(SOURCES) == 8
    assert sorted(p.stem for p in FOLDER.glob("*.ipynb")) == SOURCES == notebooks.names()


@pytest.mark.filterwarnings("default")  # part of the notebook's own page, not of dovetail
@pytest.mark.skipif("cpu" not in INSTALLED, reason="on the interpreter they take minutes")
@tutorial
def test_tutorial_runs_from_top_to_bottom(name: str) -> None:
    pytest.importorskip(NEEDS.get(name, "matplotlib"))
    if name == "07_your_own_backend" and not any(map(find_compiler, ("cc", "gcc", "clang"))):
        pytest.skip("there is no C compiler here: install gcc or clang")
    if name == "08_out_of_core" and taken_for_sparse():
        pytest.skip("Dask would take the folder `sparse` of the checkout for a package")
    done = notebooks.run(
        notebooks.notebook(name)
    )  # a cell that fails, or warns as an error, raises
    assert all(o["output_type"] != "error" for o in outputs(done))
    assert differing(notebooks.stored(name), done) == {}, "docs/tutorials/notebooks.py writes them"


def stream(text: str, name: str = "stdout") -> Any:
    return nbformat.v4.new_output("stream", name=name, text=text)


def picture(kind: str, text: str = "") -> Any:
    return nbformat.v4.new_output("display_data", {kind: "", "text/plain": text})


def book(*outputs: Any) -> Any:
    """Return a notebook with a text, a cell that says "one" and one that has these outputs."""
    form: Any = nbformat.v4
    first, second = (form.new_code_cell("", outputs=o) for o in ([stream("one\n")], [*outputs]))
    made = form.new_notebook(cells=[form.new_markdown_cell("# A"), first, second])
    for i, cell in enumerate(made.cells):
        cell["id"] = f"00-{i:02}"
    return made


def test_stream_in_parts_equals_one_stream() -> None:
    whole = book(stream("a\nb\n"), picture("image/png"))
    parts = book(stream("a\n"), picture("image/png"), stream("b"), stream("\n"))
    assert differing(whole, parts) == {}


def test_measured_values_may_differ_and_counts_may_not() -> None:
    texts = ("8 cases, 2 s at 0x7f6c", "8 cases, 11.5 s at 0x10", "13 cases, 2 s at 0x7f6c")
    books = [book(stream(t), picture("image/png", t)) for t in texts]
    assert differing(books[0], books[1]) == {} and [*differing(books[0], books[2])] == ["00-02"]


@pytest.mark.parametrize(
    "doctored",
    [
        [picture("image/png")],
        [stream("a\nb\nc\n"), picture("image/png")],
        [stream("a\nc\n"), picture("image/png")],
        [stream("a\nb\n"), picture("image/png", "8 passed")],
        [stream("a\nb\n"), picture("text/html")],
        [stream("a\nb\n"), picture("image/png"), picture("image/png")],
        [stream("a\nb\n", "stderr"), picture("image/png")],
        [stream("a\n"), stream("b\n")],  # two outputs, as before
    ],
)
def test_changed_output_is_found_by_its_cell(doctored: list[Any]) -> None:
    whole = book(stream("a\nb\n"), picture("image/png"))
    assert list(differing(whole, book(*doctored))) == ["00-02"]


@tutorial
def test_stored_notebook_equals_its_source(name: str) -> None:
    book = notebooks.stored(name)
    assert notebooks.texts(book) == notebooks.texts(notebooks.notebook(name))
    assert (FOLDER / f"{name}.ipynb").stat().st_size < LARGEST


@tutorial
def test_tutorial_has_output_and_names_the_next_page(name: str) -> None:
    book = notebooks.stored(name)
    seen = {kind for o in outputs(book) for kind in o.get("data", {})}
    assert {"image/png", "text/html"} & seen
    last = book.cells[-1].source
    assert "## What to read next" in last
    for link in re.findall(r"\]\(([^)]+)\)", last):
        assert (FOLDER / link).exists(), link


@tutorial
def test_tutorial_contains_no_local_path(name: str) -> None:
    assert not re.search(r"/(home|root|opt|tmp|Users)/", (FOLDER / f"{name}.ipynb").read_text())


def find_compiler(name: str) -> bool:
    return any((Path(p) / name).exists() for p in os.environ.get("PATH", "").split(os.pathsep))


def taken_for_sparse() -> bool:
    found = find_spec("sparse") if sys.modules.get("sparse", True) else None
    return found is not None and found.origin is None
