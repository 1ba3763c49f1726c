"""Writes the tutorials: each notebook from the plain text that lies in `sources`, with its outputs.

    python docs/tutorials/notebooks.py [--check] [NAME ...]

A source is a Python file of cells. A line `# %%` begins one of code, `# %% [markdown]` one of
text, whose lines are comments. Each notebook is run in a fresh kernel. `--check` runs and writes
nothing: it says which notebook on disk has other cells than its source, or does not run.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

HERE = Path(__file__).resolve().parent
SOURCES = HERE / "sources"
TEXT, CODE = "# %% [markdown]", "# %%"
LIMIT = 300  # seconds for a cell, and for a kernel to begin: where others work, too, 60 were few
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def names() -> list[str]:
    """The tutorials, by the order in which they are read."""
    return sorted(p.stem for p in SOURCES.glob("*.py"))


def cells(source: str) -> Iterator[tuple[str, str]]:
    """The cells of a source: ("markdown" or "code", text)."""
    kind, lines = "", list[str]()
    for line in [*source.splitlines(), CODE]:
        if line not in (TEXT, CODE):
            lines.append(line.removeprefix("#").removeprefix(" ") if kind == "markdown" else line)
            continue
        text = "\n".join(lines).strip("\n")
        if kind and text:
            yield kind, text
        kind, lines = "markdown" if line == TEXT else "code", []


def notebook(name: str) -> Any:
    """A tutorial that has not been run."""
    form: Any = nbformat.v4
    made = form.new_notebook(metadata={"kernelspec": KERNEL, "language_info": {"name": "python"}})
    for i, (kind, text) in enumerate(cells((SOURCES / f"{name}.py").read_text())):
        cell = form.new_markdown_cell(text) if kind == "markdown" else form.new_code_cell(text)
        cell["id"] = f"{name[:2]}-{i:02}"
        made.cells.append(cell)
    return made


def run(made: Any) -> Any:
    """The same notebook with its outputs. Raises: CellExecutionError with cell and error."""
    client = NotebookClient(
        made,
        timeout=LIMIT,
        startup_timeout=LIMIT,
        record_timing=False,
        kernel_name=KERNEL["name"],
        resources={"metadata": {"path": str(HERE)}},
    )
    done = client.execute()
    done.metadata = dict(made.metadata, language_info={"name": "python"})
    for cell in done.cells:
        if cell.cell_type == "code":
            cell.outputs = [o for o in cell.outputs if o.get("name") != "stderr"]
    return done


def stored(name: str) -> Any:
    """The notebook on disk."""
    return nbformat.read(HERE / f"{name}.ipynb", as_version=4)  # type: ignore[no-untyped-call]  # it has no types


def texts(book: Any) -> list[tuple[str, str]]:
    """The cells of a notebook without their outputs."""
    return [(cell.cell_type, cell.source) for cell in book.cells]


def main(arguments: Sequence[str]) -> int:
    """0 if every notebook was written, or is as it should be; 1 if not."""
    parser = argparse.ArgumentParser(description="Writes the tutorials.")
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("name", nargs="*", help="default: all")
    asked, wrong = parser.parse_args(arguments), 0
    for name in asked.name or names():
        try:
            done = run(notebook(name))
        except CellExecutionError as error:
            print(f"{name}: {error}", file=sys.stderr)
            wrong += 1
            continue
        if not asked.check:
            nbformat.write(done, HERE / f"{name}.ipynb")  # type: ignore[no-untyped-call]  # it has no types
        elif texts(stored(name)) != texts(done):
            print(f"{name}.ipynb is not its source: python docs/tutorials/notebooks.py {name}")
            wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
