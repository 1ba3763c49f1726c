"""Generate the pages of the reference, docs/reference, from signatures and docstrings.

    python tools/reference.py                      # write the pages
    python tools/reference.py --missing [PREFIX]   # print the parameters without a text

The text of a parameter comes from the docstring ("- `name`: text."), or from parameters.toml.
"""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import names

TABLE = Path(__file__).with_name("parameters.toml")  # texts of common parameters
UNLISTED = {"self", "cls", "more", "theirs"}  # `more` and `theirs`: other libraries' parameters
INTERNAL_METHODS = {"forward", "extra_repr", "rule"}  # the class calls them

# --- docstrings ----------------------------------------------------------------------------------

NAMES = r"`\*{0,2}\w+(?:\([^`]*\))?`(?:(?:,| and|, and) `\*{0,2}\w+(?:\([^`]*\))?`)*"
PARAMETER = re.compile(rf"(?:- )?(?P<names>{NAMES}): (?P<text>.+)", re.DOTALL)
INLINE = re.compile(rf"(?<=[.;)`]) (?={NAMES}: )")  # "... `betas`: the weights. `eps`: ..."
LABEL = re.compile(r"(?P<label>[A-Z][a-z]+(?: [a-z]+)?): (?P<text>.+)", re.DOTALL)


@dataclass
class Docstring:
    """The parts of a docstring, in Markdown."""

    summary: str = ""
    prose: list[str] = field(default_factory=list)  # paragraphs, lists, literal blocks
    parameters: dict[str, str] = field(default_factory=dict)
    items: dict[str, str] = field(default_factory=dict)  # by label, such as "Raises"
    examples: list[str] = field(default_factory=list)


def chunks(text: str) -> Iterator[list[str]]:
    """Yield the lines of each paragraph, labelled item, list item, literal block and example."""
    chunk: list[str] = []
    for line in text.splitlines():
        verbatim = bool(chunk) and chunk[0].startswith((">>>", "    "))
        begins = (
            line.startswith("- ") or LABEL.match(line) or PARAMETER.match(line)
        ) and not verbatim
        if chunk and (begins or not line):
            yield chunk
            chunk = []
        if line:
            chunk.append(line)
    if chunk:
        yield chunk


def parse_docstring(text: str, parameters: set[str]) -> Docstring:
    """Return the parts of a docstring; texts of other names than `parameters` stay prose."""
    first, _, rest = inspect.cleandoc(text).partition("\n\n")
    parts = Docstring(" ".join(first.split("\n")))
    for lines in chunks(rest):
        if lines[0].startswith(">>>"):
            parts.examples.append("\n".join(lines))
        elif lines[0].startswith("    "):
            parts.prose.append("\n".join(lines))
        elif match := LABEL.match(joined := " ".join(line.strip() for line in lines)):
            parts.items[match["label"]] = match["text"]
        else:
            add_paragraph(parts, joined, parameters)
    return parts


def add_paragraph(parts: Docstring, paragraph: str, parameters: set[str]) -> None:
    """Add the texts of parameters in a paragraph, and the rest of it, to the parts."""
    for piece in INLINE.split(paragraph):
        match = PARAMETER.match(piece)
        described = re.findall(r"`\*{0,2}(\w+)", match["names"]) if match else []
        if match and described and parameters.issuperset(described):
            parts.parameters |= dict.fromkeys(described, match["text"])
        else:
            parts.prose.append(piece)


# --- parameters ----------------------------------------------------------------------------------


@cache
def common_texts() -> dict[str, dict[str, str]]:
    """Return the texts of parameters that mean the same in each function under a public name."""
    return tomllib.loads(TABLE.read_text("utf-8"))


def common_text(name: str, parameter: str) -> str:
    """Return the text of a parameter in the table for the longest prefix of a public name."""
    space = name
    while space:
        if text := common_texts().get(space, {}).get(parameter):
            return text
        space = space.rpartition(".")[0]
    return common_texts()[""].get(parameter, "")


def signature_parameters(value: Any) -> dict[str, inspect.Parameter]:
    """Return the parameters of a callable that its users pass, by name."""
    try:
        parameters = inspect.signature(value).parameters
    except (TypeError, ValueError):  # a class of C
        return {}
    return {
        n: p for n, p in parameters.items() if n not in UNLISTED and not n.startswith("_")
    }  # fmt: skip


def docstring(value: Any) -> Docstring:
    """Return the parts of a value's docstring; a class has the parameters of its bases too."""
    parameters = {*signature_parameters(value)}
    parts = parse_docstring(inspect.getdoc(value) or "", parameters)
    for base in value.__mro__[1:-1] if inspect.isclass(value) else ():
        inherited = parse_docstring(base.__doc__ or "", parameters).parameters
        parts.parameters = inherited | parts.parameters
    return parts


def parameter_texts(name: str, value: Any) -> dict[str, str]:
    """Return the text of each parameter of a public function, method or class."""
    parts = docstring(value)
    return {p: parts.parameters.get(p) or common_text(name, p) for p in signature_parameters(value)}


def is_described(parameter: str, text: str, parts: Docstring) -> bool:
    """Return True if a parameter has a text, or if the first sentence of the docstring names it."""
    return bool(text) or re.search(rf"`\*{{0,2}}{parameter}\b", parts.summary) is not None


def missing_parameters(prefix: str = "") -> list[str]:
    """Return the parameters without a text, each as "dt.function: parameter"."""
    return [
        f"{name}: {parameter}"
        for name, value in callables().items()
        if name.startswith(prefix)
        for parts in [docstring(value)]
        for parameter, text in parameter_texts(name, value).items()
        if not is_described(parameter, text, parts)
    ]


# --- public names --------------------------------------------------------------------------------


def callables() -> dict[str, Any]:
    """Return the public functions, classes and methods, each under its first name."""
    values_by_name = names.public_values()
    first_class = names.first_names(values_by_name)
    callables: dict[str, Any] = {}
    for name, value in values_by_name.items():
        if inspect.isroutine(value):
            callables[name] = value
        elif inspect.isclass(value) and first_class[id(value)] == name:
            if not issubclass(value, BaseException):
                callables[name] = value
            callables |= {f"{name}.{n}": m for n, m in methods(value, first_class)}
    first: dict[int, str] = {}
    for name, value in callables.items():
        first.setdefault(id(value), name)
    return {name: value for name, value in callables.items() if first[id(value)] == name}


def methods(kind: type, public: dict[int, str]) -> Iterator[tuple[str, Any]]:
    """Yield the methods that a class adds to its public bases, without internal ones."""
    for name, value in names.own_members(kind, public):
        overrides = any(name in vars(base) for base in kind.__mro__[1:])
        if (
            inspect.isroutine(value)
            and value.__doc__
            and name not in INTERNAL_METHODS
            and not (name == "reset_parameters" and overrides)
            and not (value.__doc__ or "").startswith("Write the result of `dt.")  # in-place forms
        ):
            yield name, value


# --- commands ------------------------------------------------------------------------------------


def main(arguments: list[str]) -> int:
    """Print the parameters without a text; return the exit status."""
    if os.environ.get("DOVETAIL_PURE") != "1":  # compiled functions have incomplete signatures
        command = [sys.executable, __file__, *arguments]
        return subprocess.call(command, env={**os.environ, "DOVETAIL_PURE": "1"})
    if arguments[:1] == ["--missing"]:
        missing = missing_parameters(*arguments[1:2])
        print(*missing, f"{len(missing)} parameters without a text", sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
