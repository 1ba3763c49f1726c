"""The reference: every public name has an entry, and every parameter a text."""

from __future__ import annotations

import re
import subprocess
import sys

import names
import pytest
import reference
from places import ROOT


def run_tool(*arguments: str) -> str:
    """Return what tools/reference.py prints."""
    command = [sys.executable, str(ROOT / "tools" / "reference.py"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the texts of the pages by name."""
    folder = tmp_path_factory.mktemp("reference")
    run_tool(str(folder))
    return {path.stem: path.read_text() for path in folder.glob("*.md")}


def entry(pages: dict[str, str], name: str) -> str:
    """Return the text below the heading of a name."""
    text = "\n".join(pages.values())
    found = re.search(rf"^####? {re.escape(name)} {{.*?\n(.*?)(?=^##|\Z)", text, re.M | re.S)
    assert found is not None, name
    return found[1]


def test_public_names_are_the_headings(pages: dict[str, str]) -> None:
    headings = re.findall(r"^### (\S+) {", "\n".join(pages.values()), re.M)
    public = {n for n, value in names.public_values().items() if type(value).__name__ != "module"}
    shown = [heading.replace("\\", "") for heading in headings]
    assert len(shown) == len({*shown})
    assert {*shown} == {reference.shorten(name) for name in public}


def test_anchors_of_a_page_are_unique(pages: dict[str, str]) -> None:
    for name, text in pages.items():
        anchors = re.findall(r"^#+ .* { #(\S+) .*}$", text, re.M)
        assert sorted(anchors) == sorted({*anchors}), name


def test_each_parameter_is_described() -> None:
    assert run_tool("--missing") == "0 parameters without a text\n"


def test_class_has_the_signature_of_its_constructor(pages: dict[str, str]) -> None:
    text = entry(pages, "optim.SGD")
    assert "\n```python\ndt.optim.SGD(\n    params: Parameters,\n    lr: float" in text
    assert "self" not in text.partition("```\n")[0]
    assert "- **`momentum`** (`float`, default `0`): " in text


def test_foreign_arguments_are_not_shown(pages: dict[str, str]) -> None:
    signature = entry(pages, "sum").partition("```\n")[0]
    assert "more" not in signature and "theirs" not in signature
    assert "    /,\n    axis: Axis = None,\n    *,\n" in signature


def test_entry_links_to_names_pages_and_sources(pages: dict[str, str]) -> None:
    text = entry(pages, "exp")
    assert "**See also:** [`expm1`](#expm1), [`exp2`](#exp2)" in text
    assert "**Raises:** [`DTypeError`](errors.md#dtypeerror)" in text
    assert "(../accuracy.md)" in text and "docs/accuracy.md" not in text
    path, line = re.findall(r"\[source code\]\(\S+/blob/main/(\S+)#L(\d+)\)", entry(pages, "roll"))[
        0
    ]
    source = (ROOT / path).read_text().splitlines()
    assert "def roll(" in "\n".join(source[int(line) - 1 : int(line) + 5])


def test_internal_and_inherited_methods_are_left_out(pages: dict[str, str]) -> None:
    members = re.findall(r"^#### (\S+) {", "\n".join(pages.values()), re.M)
    assert not [m for m in members if m.endswith((".forward", ".extra_repr", "Adam.rule"))]
    assert "nn.Module.parameters" in members and "nn.Linear.parameters" not in members


def test_other_names_lead_to_the_function(pages: dict[str, str]) -> None:
    assert "| `dt.clamp` | [`dt.clip`](elementwise.md#clip) |" in pages["other-names"]


DOCSTRING = """Return the first sentence
    of `f`.

    A paragraph. `a`: the first
    one. `b`, `c`: the others.

    - `d`: a text
      in two lines.
    - `other`: no parameter.

    `*e`: further ones.
    Shapes: any.
    Raises: ShapeError; `a`: is no item here.

    >>> 1
    1

    Text between.

    >>> 2
    2
    """


def test_docstring_is_split_into_its_parts() -> None:
    parts = reference.parse_docstring(DOCSTRING, {*"abcde"})
    assert parts.summary == "Return the first sentence of `f`."
    assert parts.prose == ["A paragraph.", "- `other`: no parameter.", "Text between."]
    assert parts.parameters == {
        "a": "the first one.", "b": "the others.", "c": "the others.", "d": "a text in two lines.",
        "e": "further ones.",
    }  # fmt: skip
    assert parts.items == {"Shapes": "any.", "Raises": "ShapeError; `a`: is no item here."}
    assert parts.examples == [">>> 1\n1", ">>> 2\n2"]


def test_docstring_comes_before_the_table_of_common_texts() -> None:
    def f(axis: int, out: object) -> None:
        """Do nothing.

        `axis`: own text.
        """

    common = reference.common_texts()[""]
    assert reference.parameter_texts("f", f) == {"axis": "own text.", "out": common["out"]}


def test_common_texts_differ_by_package_and_page() -> None:
    texts = reference.common_texts()
    assert reference.common_text("dt.nn.Linear", "device") == texts["dt.nn"]["device"]
    assert reference.common_text("dt.zeros", "device") == texts[""]["device"]
    assert reference.common_text("dt.exp", "x") == texts["elementwise"]["x"] != texts[""]["x"]


def test_missing_texts_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(a: int, b: int, c: int) -> None:
        """Use `a`.

        - `b`: a number.
        """

    monkeypatch.setattr(reference, "callables", lambda: {"dt.f": f, "dt.g": f})
    assert reference.missing_parameters("dt.f") == ["dt.f: c"]
