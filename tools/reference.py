"""Generate the pages of the reference, docs/reference, from signatures and docstrings.

    python tools/reference.py [FOLDER]             # write the pages, into docs/reference
    python tools/reference.py --missing [PREFIX]   # print the parameters without a text

The pages and their groups are in reference.toml. The text of a parameter comes from the docstring
("- `name`: text."), or from parameters.toml.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, ForwardRef

import names

ROOT = Path(__file__).resolve().parent.parent
CORE = ROOT / "core" / "dovetail"
REFERENCE = ROOT / "docs" / "reference"
PAGES_FILE = Path(__file__).with_name("reference.toml")
TEXTS_FILE = Path(__file__).with_name("parameters.toml")
# The address of the sources; `#L12` is a line of a file.
SOURCE = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["urls"]["Source"]

RENAMED = {"dt.bool": "bool_", "dt.__array_namespace_info__": "array_namespace_info"}
UNLISTED = {"self", "cls", "more", "theirs"}  # `more` and `theirs`: other libraries' parameters
INTERNAL_METHODS = {"forward", "extra_repr", "rule"}  # the class calls them
SUMMARY_ENTRIES_MIN = 8  # a page with so many has a table of its names
NEIGHBOURS_MAX = 4
WIDTH = 88  # columns of a signature

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


def parse_docstring(text: str, parameters: Collection[str] = ()) -> Docstring:
    """Return the parts of a docstring; texts of other names than `parameters` stay prose."""
    first, _, rest = inspect.cleandoc(text).partition("\n\n")
    parts = Docstring(" ".join(first.split("\n")))
    for lines in split_paragraphs(rest):
        if lines[0].startswith(">>>"):
            parts.examples.append("\n".join(lines))
        elif lines[0].startswith("    "):
            parts.prose.append("\n".join(lines))
        elif match := LABEL.match(joined := " ".join(line.strip() for line in lines)):
            parts.items[match["label"]] = match["text"]
        else:
            add_paragraph(parts, joined, parameters)
    return parts


def split_paragraphs(text: str) -> Iterator[list[str]]:
    """Yield the lines of each paragraph, item, literal block and example."""
    block: list[str] = []
    for line in text.splitlines():
        verbatim = bool(block) and block[0].startswith((">>>", "    "))
        begins = line.startswith("- ") or LABEL.match(line) or PARAMETER.match(line)
        if block and (not line or (begins and not verbatim)):
            yield block
            block = []
        if line:
            block.append(line)
    if block:
        yield block


def add_paragraph(parts: Docstring, paragraph: str, parameters: Collection[str]) -> None:
    """Add the texts of parameters in a paragraph, and the rest of it, to the parts."""
    for piece in INLINE.split(paragraph):
        match = PARAMETER.match(piece)
        described = re.findall(r"`\*{0,2}(\w+)", match["names"]) if match else []
        if match and {*parameters}.issuperset(described):
            parts.parameters |= dict.fromkeys(described, match["text"])
        else:
            parts.prose.append(piece)


def has_docstring(value: Any) -> bool:
    """Return True if the docstring of a value describes it, not only its type."""
    if inspect.isroutine(value) or inspect.ismodule(value) or isinstance(value, property):
        return True
    kind = value if inspect.isclass(value) else type(value)
    is_dtype = kind is not value and kind.__name__ == "DType"
    return kind.__module__.startswith("dovetail") and not is_dtype


def docstring(value: Any) -> Docstring:
    """Return the parts of a value's docstring; a class has the parameters of its bases too."""
    parameters = signature_parameters(value)
    text = inspect.getdoc(value) if has_docstring(value) else ""
    parts = parse_docstring(text or "", parameters)
    for base in value.__mro__[1:-1] if inspect.isclass(value) else ():
        inherited = parse_docstring(base.__doc__ or "", parameters).parameters
        parts.parameters = inherited | parts.parameters
    return parts


# --- parameters ----------------------------------------------------------------------------------


@cache
def common_texts() -> dict[str, dict[str, str]]:
    """Return the texts of parameters that mean the same in each function under a public name."""
    return tomllib.loads(TEXTS_FILE.read_text("utf-8"))


def common_text(name: str, parameter: str) -> str:
    """Return the text of a parameter in the table for the longest prefix of a public name.

    The tables of the page and of all names come last.
    """
    spaces = [name]
    while spaces[-1]:
        spaces.append(spaces[-1].rpartition(".")[0])
    page = entries()[name].page if name in entries() else ""
    texts = [common_texts().get(space, {}).get(parameter) for space in (*spaces[:-1], page, "")]
    return next((text for text in texts if text), "")


def signature_parameters(value: Any) -> dict[str, inspect.Parameter]:
    """Return the parameters of a callable that its users pass, by name."""
    if not callable(value) or type(value).__name__ == "DType":
        return {}
    try:
        parameters = inspect.signature(value).parameters
    except ValueError:  # a class of C
        return {}
    own = {n: p for n, p in parameters.items() if n not in UNLISTED and not n.startswith("_")}
    variadic = all(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in own.values())
    # users do not construct such classes, nor call types of functions
    return {} if variadic and not inspect.isroutine(value) else own


def parameter_texts(name: str, value: Any) -> dict[str, str]:
    """Return the text of each parameter of a public function, method or class."""
    parts = docstring(value)
    return {p: parts.parameters.get(p) or common_text(name, p) for p in signature_parameters(value)}


def missing_parameters(prefix: str = "") -> list[str]:
    """Return the parameters without a text, each as "dt.function: parameter".

    A parameter that the first sentence of the docstring names needs no text.
    """
    return [
        f"{name}: {parameter}"
        for name, value in callables().items()
        if name.startswith(prefix)
        for summary in [docstring(value).summary]
        for parameter, text in parameter_texts(name, value).items()
        if not text and not re.search(rf"`\*{{0,2}}{parameter}\b", summary)
    ]


def format_signature(name: str, value: Any) -> str:
    """Return the signature of a public callable, in one line or a line for each parameter."""
    parts, previous = list[str](), None
    for p in (parameters := signature_parameters(value)).values():
        if previous == p.POSITIONAL_ONLY != p.kind:
            parts.append("/")
        if p.kind == p.KEYWORD_ONLY and previous not in (p.KEYWORD_ONLY, p.VAR_POSITIONAL):
            parts.append("*")
        hint = format_annotation(p.annotation)
        hint = f": {hint}" if hint else ""
        default = f"{' = ' if hint else '='}{format_default(p.default)}" if has_default(p) else ""
        parts.append(f"{starred_name(p)}{hint}{default}")
        previous = p.kind
    if parameters and previous == inspect.Parameter.POSITIONAL_ONLY:
        parts.append("/")
    result = "" if inspect.isclass(value) else return_hint(value)
    tail = f") -> {result}" if result else ")"
    one = f"{name}({', '.join(parts)}{tail}"
    several = [f"{name}(", *(f"    {part}," for part in parts), tail]
    return one if len(one) <= WIDTH or not parts else "\n".join(several)


def format_annotation(annotation: object) -> str:
    """Return the text of an annotation, or "" if there is none."""
    if annotation is inspect.Parameter.empty:
        return ""
    if isinstance(annotation, ForwardRef):  # of a NamedTuple
        return annotation.__forward_arg__
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)


def return_hint(value: Any) -> str:
    """Return the text of the type that a function returns."""
    return format_annotation(inspect.signature(value).return_annotation)


def format_default(default: object) -> str:
    """Return the text of a default, or "..." if it has no short one."""
    text = json.dumps(default) if isinstance(default, str) else repr(default)
    return "..." if text.startswith("<") or len(text) > 40 else text


def has_default(p: inspect.Parameter) -> bool:
    """Return True if a call may omit a parameter; some have a default that raises the error."""
    required = {"_Missing", "_raise_missing_field"}
    name = getattr(p.default, "__name__", type(p.default).__name__)
    return p.default is not p.empty and name not in required


def starred_name(p: inspect.Parameter) -> str:
    """Return the name of a parameter, with the stars of a variadic one."""
    return "*" * (p.kind is p.VAR_POSITIONAL) + "**" * (p.kind is p.VAR_KEYWORD) + p.name


# --- public names --------------------------------------------------------------------------------


@dataclass
class Entry:
    """A public name, and its place in the reference."""

    name: str  # "dt.nn.Linear"
    value: Any
    page: str
    group: str
    anchor: str
    original: Entry | None = None  # the entry of the same object under another name

    @property
    def short(self) -> str:
        """The name without "dt."."""
        return shorten(self.name)

    def link(self, page: str) -> str:
        """Return a link to this entry from a page."""
        return f"[`{self.short}`]({relative_target(f'{self.page}#{self.anchor}', page)})"


def shorten(name: str) -> str:
    """Return a public name without "dt." or "dovetail."."""
    return name.removeprefix("dt.").removeprefix("dovetail.")


def relative_target(target: str, page: str) -> str:
    """Return the target of a link from a page to "page#anchor"."""
    there, _, anchor = target.partition("#")
    return f"#{anchor}" if there == page else f"{there}.md#{anchor}"


def name_sort_key(name: str) -> tuple[int, list[int | str]]:
    """Return the sort key of a name's last part: constants, classes, others; numbers by value."""
    last = name.rpartition(".")[2]
    kind = 0 if last.isupper() else 1 if last[0].isupper() else 2
    return kind, [int(p) if p.isdigit() else p for p in re.split(r"(\d+)", last)]


def make_anchor(text: str) -> str:
    """Return the anchor of a heading, as forges make it."""
    return re.sub(r"[^\w-]", "", text.lower().replace(" ", "-")).lstrip("_")


@cache
def page_table() -> dict[str, Any]:
    """Return the pages of the reference with their groups."""
    return tomllib.loads(PAGES_FILE.read_text("utf-8"))


@cache
def module_names() -> frozenset[str]:
    """Return the names of the modules of dovetail, within it."""
    paths = (p.relative_to(CORE).with_suffix("") for p in CORE.rglob("*.py"))
    return frozenset(".".join(p.parts).removesuffix(".__init__") for p in paths)


@cache
def public_values() -> dict[str, Any]:
    """Return the public values by name, without modules; the shortest names come first."""
    values = names.public_values()
    by_length = sorted(values, key=lambda name: name.count("."))
    return {name: values[name] for name in by_length if not inspect.ismodule(values[name])}


@cache
def class_names() -> dict[int, str]:
    """Return the first public name of each class, by its identity."""
    return names.first_names(public_values())


@cache
def entries() -> dict[str, Entry]:
    """Return the entry of each public name, in the order of the pages."""
    places = [
        (page, group, token)
        for page, table in page_table().items()
        for group, tokens in table["groups"].items()
        for token in tokens.split()
    ]
    by_short = {shorten(name): name for name in public_values()}
    listed = {by_short[token] for _, _, token in places if token not in module_names()}
    entries: dict[str, Entry] = {}
    taken: set[tuple[str, str]] = set()
    for page, group, token in places:
        for name in exported_by(token, listed) if token in module_names() else [by_short[token]]:
            if name in entries:
                continue
            anchor = make_anchor(shorten(name))
            anchor += "-function" * ((page, anchor) in taken)  # beside a class: Device, device
            taken.add((page, anchor))
            entries[name] = Entry(name, public_values()[name], page, group, anchor)
    lost = sorted({*public_values()} - {*entries})
    assert not lost, f"tools/reference.toml has no group for {lost}"
    first: dict[int, Entry] = {}
    for name in public_values():
        if inspect.isroutine(value := entries[name].value) or inspect.isclass(value):
            entries[name].original = first.get(id(value))
            first.setdefault(id(value), entries[name])
    return entries


def exported_by(module_name: str, listed: Collection[str]) -> list[str]:
    """Return the public names that a module exports, without those that a group lists.

    A package may wrap the functions of its modules, which have the same names then.
    """
    module = importlib.import_module(f"dovetail.{module_name}")
    exported = {*names.exported_names(module)}
    found = []
    for name, value in public_values().items():
        space, _, last = name.rpartition(".")
        own = RENAMED.get(name, last)
        if own in exported and name not in listed:
            wrapped = f"dt.{module_name}.".startswith(f"{space}.") and space != "dt"
            found += [name] if wrapped or getattr(module, own) is value else []
    return sorted(found, key=name_sort_key)


def members(kind: Any) -> list[tuple[str, Any]]:
    """Return the documented members that a class adds to its public bases."""
    return [
        (name, value)
        for name, value in (names.own_members(kind, class_names()) if inspect.isclass(kind) else ())
        if inspect.isroutine(value) or isinstance(value, property)
        if value.__doc__ and name not in INTERNAL_METHODS
        if name != "reset_parameters" or not any(name in vars(b) for b in kind.__mro__[1:])
    ]


@cache
def callables() -> dict[str, Any]:
    """Return the public functions, classes and methods, each under its first name."""
    callables: dict[str, Any] = {}
    for entry in entries().values():
        if entry.original is None and callable(entry.value) and not is_exception(entry.value):
            callables[entry.name] = entry.value
    seen = {id(value) for value in callables.values()}
    for entry in entries().values():
        for name, value in members(entry.value) if entry.original is None else ():
            if is_function(value) and id(value) not in seen and not is_in_place(value):
                callables[f"{entry.name}.{name}"] = value
    return callables


def is_function(value: Any) -> bool:
    """Return True for functions and methods, False for other descriptors."""
    return inspect.isroutine(value) and callable(value)


def is_exception(value: Any) -> bool:
    """Return True for the class of an exception."""
    return inspect.isclass(value) and issubclass(value, BaseException)


def is_in_place(value: Any) -> bool:
    """Return True for a method that writes the result of a function into its tensor."""
    return (value.__doc__ or "").startswith("Write the result of `dt.")


def synonyms() -> Iterator[tuple[str, str]]:
    """Yield the exact synonyms, each with dovetail's name, both without "dt."."""
    for space, pairs in importlib.import_module("dovetail.compat.aliases").ALIASES.items():
        space = {"Generator": "random.Generator"}.get(space, space)
        for ours, theirs in pairs.items():
            for name in theirs.split():
                yield f"{space}.{name}".strip("."), f"{space}.{ours}".strip(".")


@cache
def targets() -> dict[str, str]:
    """Return "page#anchor" of each public name, each member and each synonym."""
    found = {e.short: f"{e.page}#{e.anchor}" for e in entries().values()}
    functions = {id(e.value): found[e.short] for e in entries().values() if not e.original}
    for e in entries().values():
        for name, value in members(e.value) if not e.original else ():
            own = f"{e.page}#{make_anchor(f'{e.short}.{name}')}"
            if not is_in_place(value):
                found[f"{e.short}.{name}"] = functions.get(id(value), own)
    return {name: found[ours] for name, ours in synonyms() if ours in found} | found


# --- sources -------------------------------------------------------------------------------------


@cache
def class_places() -> dict[str, list[tuple[str, int]]]:
    """Return the files and lines of the classes at the top level of modules, by name."""
    places: dict[str, list[tuple[str, int]]] = {}
    for path in sorted(CORE.rglob("*.py")):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append((str(path), node.lineno))
    return places


def source_link(value: Any) -> str:
    """Return a link to the definition of a function or a class, or "" for other values."""
    places: list[tuple[str, int]] = []
    if inspect.isclass(value):
        files = {f.__code__.co_filename for f in vars(value).values() if inspect.isfunction(f)}
        places = class_places().get(value.__name__, [])
        places = [place for place in places if place[0] in files] or places
    elif callable(function := getattr(value, "fget", value)):
        code = getattr(inspect.unwrap(function), "__code__", None)
        places = [(code.co_filename, code.co_firstlineno)] if code else []
    for file, line in places:
        if (path := Path(file)).is_relative_to(ROOT):
            address = f"{SOURCE}/blob/main/{path.relative_to(ROOT).as_posix()}#L{line}"
            return f"[source code]({address}){{ .source }}"
    return ""


# --- Markdown ------------------------------------------------------------------------------------

SPAN = re.compile(r"(`[^`]+`)")
ERROR_NAME = re.compile(r"(?<!`)\b[A-Z]\w+(?:Error|Warning)\b(?!`)")
PAGE_MENTION = re.compile(r"docs/(?P<path>[\w/-]+\.md)(?P<anchor>#[\w-]+)?")


class Page:
    """A page of the reference, in Markdown."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.title = page_table()[name]["title"]
        self.groups: dict[str, list[Entry]] = {group: [] for group in page_table()[name]["groups"]}
        for e in entries().values():
            if e.page == name:
                self.groups[e.group].append(e)

    def render(self) -> str:
        """Return the text of the page."""
        parts = [f"# {self.title}", "[All pages](README.md)"]
        parts.append(page_table()[self.name].get("text", ""))
        if module := page_table()[self.name].get("module"):
            parts += self.describe(module, importlib.import_module(f"dovetail.{module}"))
        if sum(map(len, self.groups.values())) >= SUMMARY_ENTRIES_MIN:
            parts.append("\n".join(self.summary()))
        for group, some in self.groups.items():
            parts.append(heading(2, group, group_anchor(group)))
            for entry in some:
                parts += self.entry(entry)
        return "\n\n".join(part for part in parts if part) + "\n"

    def summary(self) -> Iterator[str]:
        """Yield the lines of a table of the names, by group, with their first sentences."""
        yield from ('<div class="names" data-search-exclude markdown>', "", "| | |", "|---|---|")
        for group, some in self.groups.items():
            yield f"| **[{group}](#{group_anchor(group)})** | |"
            for e in some:
                text = self.link_names(summarize(e.value), e.short, signature_parameters(e.value))
                text = text.replace("|", r"\|")
                yield f"| {e.link(self.name)} | {text} |"
        yield from ("", "</div>")

    def entry(self, entry: Entry) -> Iterator[str]:
        """Yield the parts of an entry, and those of the members of a class."""
        yield heading(3, entry.short, entry.anchor)
        if entry.original:
            yield f"The same as {entry.original.link(self.name)}."
            return
        neighbours = "" if is_exception(entry.value) else self.neighbours(entry)
        yield from self.describe(entry.name, entry.value, neighbours)
        also: list[str] = []
        in_place: list[str] = []
        for name, value in members(entry.value):
            short = f"{entry.short}.{name}"
            target = targets().get(short, "")
            if is_in_place(value):
                in_place.append(f"`{name}`")
            elif target != f"{self.name}#{make_anchor(short)}":
                also.append(f"[`{name}`]({relative_target(target, self.name)})")
            else:
                yield heading(4, short, make_anchor(short))
                yield from self.describe(f"{entry.name}.{name}", value)
        if also:
            yield f"**Functions that are methods too:** {', '.join(also)}."
        if in_place:
            yield f"**Methods that write their result into the tensor:** {', '.join(in_place)}."

    def describe(self, name: str, value: Any, neighbours: str = "") -> Iterator[str]:
        """Yield the signature, the parameters, the texts and the examples of a value."""
        parts, parameters = docstring(value), signature_parameters(value)
        texts = parameter_texts(name, value)

        def link(text: str) -> str:
            return self.link_names(text, shorten(name), parameters)

        if parameters or is_function(value):
            yield f"```python\n{format_signature(name, value)}\n```"
        yield source_link(value)
        yield link(summarize(value))
        if parameters:
            yield "**Parameters**"
        yield "\n".join(describe_parameter(p, link(texts[n])) for n, p in parameters.items())
        yield "<!-- -->" if parameters and not parts.prose else ""  # two lists, not one
        yield from map(link, parts.prose)
        items = {label: f"`{text}`" for label, text in facts(value)} | parts.items
        if "Raises" in items:
            items["Raises"] = ERROR_NAME.sub(r"`\g<0>`", items["Raises"])
        if neighbours:
            items.setdefault("See also", neighbours)
        yield "\n".join(f"- **{label}:** {link(text)}" for label, text in items.items())
        yield from (f"```python\n{example}\n```" for example in parts.examples)

    def neighbours(self, entry: Entry) -> str:
        """Return the names of the same function elsewhere and of the nearest of the group."""
        group = [e for e in self.groups[entry.group] if not e.original]
        by_distance = sorted(group, key=lambda e: abs(group.index(e) - group.index(entry)))
        near = [*counterparts().get(counterpart_key(entry), []), *by_distance]
        links = [*dict.fromkeys(f"`{e.name}`" for e in near if e is not entry)][:NEIGHBOURS_MAX]
        return ", ".join(links) + "." if links else ""

    def link_names(self, text: str, short: str, parameters: Collection[str] = ()) -> str:
        """Return a text with links to the public names and the pages that it mentions.

        short: the name that the text is about. parameters: names that are not links.
        """
        if text.startswith("    "):  # a literal block
            return text
        spans = SPAN.split(text)  # prose, code, prose, ...
        spans[::2] = [link_pages(prose.replace("*", r"\*")) for prose in spans[::2]]
        for i, code in enumerate(spans[1::2]):
            target = None if code.strip("`") in parameters else find_target(code.strip("`"), short)
            if target:
                spans[2 * i + 1] = f"[{code}]({relative_target(target, self.name)})"
        return "".join(spans)


def find_target(name: str, short: str) -> str | None:
    """Return "page#anchor" of a name in the text about the name `short`, or None.

    The name is looked up in the class and the packages of `short`, from the inside out.
    """
    name = shorten(name.removesuffix("()"))
    if len(name) == 1 or name in (short, short.rpartition(".")[2]) or name in common_texts()[""]:
        return None
    space = short
    while space:
        space = space.rpartition(".")[0]
        for package in (space, f"{space}.functional"):
            if target := targets().get(f"{package}.{name}".strip(".")):
                return target
    return None


def link_pages(text: str) -> str:
    """Return a text with links for the mentions of pages, such as docs/numerics.md."""

    def link(match: re.Match[str]) -> str:
        path = ROOT / "docs" / match["path"]
        if not path.is_file():
            return match[0]
        title = path.read_text("utf-8").partition("\n")[0].removeprefix("# ")
        return f"[{title}](../{match['path']}{match['anchor'] or ''})"

    return PAGE_MENTION.sub(link, text)


def heading(level: int, text: str, anchor: str) -> str:
    """Return a heading with its anchor; the table of contents shows the last part of a name."""
    space, _, last = text.rpartition(".")
    label = f' data-toc-label="{last}"' if space else ""
    text = text.replace("__", r"\_\_")
    return f"{'#' * level} {text} {{ #{anchor}{label} }}"


def group_anchor(group: str) -> str:
    """Return the anchor of the heading of a group; no public name begins so."""
    return make_anchor(f"group {group}")


KINDS = {
    "b": "truth values", "i": "signed integers", "u": "unsigned integers", "f": "floats",
    "c": "complex numbers",
}  # fmt: skip


def summarize(value: Any) -> str:
    """Return the first sentence about a value; for a constant its type and value."""
    if summary := docstring(value).summary:
        return summary
    if type(value).__name__ == "DType":
        size = f"{value.itemsize} byte{'s' * (value.itemsize > 1)}"
        return f"The dtype of {KINDS[value.kind]} of {size}."
    if type(value).__module__ in ("types", "typing"):
        text = re.sub(r"\b(?:\w+\.)+(?=[A-Za-z])", "", inspect.formatannotation(value))
        return f"A type of annotations: `{text}`."
    return f"A value of type `{type(value).__name__}`: `{format_default(value)}`."


def describe_parameter(p: inspect.Parameter, text: str) -> str:
    """Return the line of a parameter: its name, type, default and text."""
    known = [f"`{hint}`"] if (hint := format_annotation(p.annotation)) else []
    known += [f"default `{format_default(p.default)}`"] if has_default(p) else []
    brackets = f" ({', '.join(known)})" if known else ""
    return f"- **`{starred_name(p)}`**{brackets}{': ' if text else ''}{text}"


def facts(value: Any) -> Iterator[tuple[str, str]]:
    """Yield what is known of a value without its docstring: a label and a name or a type."""
    if inspect.isclass(value):
        bases = [class_names()[id(b)] for b in value.__mro__[1:-1] if id(b) in class_names()]
        if bases:
            yield "Inherits from", bases[0]
    elif is_function(value) and return_hint(value) not in ("", "None"):
        yield "Returns", return_hint(value)


@cache
def counterparts() -> dict[str, list[Entry]]:
    """Return the entries whose names are equal except for case, package and "_loss"."""
    found: dict[str, list[Entry]] = {}
    for e in entries().values():
        if e.original is None and e.page != "extend":
            found.setdefault(counterpart_key(e), []).append(e)
    return found


def counterpart_key(entry: Entry) -> str:
    """Return a name without case, package, underscores and "_loss"."""
    return entry.short.rpartition(".")[2].lower().replace("_", "").removesuffix("loss")


# --- pages ---------------------------------------------------------------------------------------

SIGNATURE_TYPES = """
| type | values |
|---|---|
| `Array` | a tensor, a NumPy array or a list |
| `Operand` | an `Array` or a Python number |
| `Axis`, `Axes` | an int, or a tuple of ints where several axes are possible; None is all of them |
| `Shape`, `Extents`, `Sizes` | an int, or a tuple of ints |
| `DTypeLike` | a dtype, its name, a NumPy dtype, or Python's bool, int, float or complex |
| `DeviceLike` | a `Device`, or a string such as "cuda:1"; None is the default device |
"""


def render_pages() -> dict[str, str]:
    """Return the texts of the pages of the reference, of the synonyms and of the index, by name."""
    texts = {}
    index = ["# Reference\n\nEvery public name, and how it is called.\n"]
    for name in page_table():
        page = Page(name)
        texts[name] = page.render()
        groups = ", ".join(page.groups) if len(page.groups) > 1 else ""
        index.append(f"- [{page.title}]({name}.md){': ' if groups else ''}{groups}")
    texts["other-names"] = render_synonyms()
    index.append("- [Other names](other-names.md): synonyms from NumPy, PyTorch and JAX")
    index.append(f"\n## Types in signatures\n\n{SIGNATURE_TYPES.strip()}")
    return {"README": "\n".join(index) + "\n", **texts}


def render_synonyms() -> str:
    """Return the text of the page of exact synonyms."""
    rows = []
    for name, ours in sorted(synonyms()):
        prefix = "" if ours[0].isupper() else "dt."
        target = relative_target(targets()[ours], "other-names")
        rows.append(f"| `{prefix}{name}` | [`{prefix}{ours}`]({target}) |")
    head = [
        "# Other names",
        "",
        "[All pages](README.md)",
        "",
        "Names of NumPy, PyTorch and JAX that dovetail accepts for its own. The functions are the "
        "same.",
        "",
        "| name | dovetail's name |",
        "|---|---|",
    ]
    return "\n".join([*head, *rows]) + "\n"


def main(arguments: list[str]) -> int:
    """Write the pages, or print the parameters without a text; return the exit status."""
    if os.environ.get("DOVETAIL_PURE") != "1":  # compiled functions have incomplete signatures
        command = [sys.executable, __file__, *arguments]
        return subprocess.call(command, env={**os.environ, "DOVETAIL_PURE": "1"})
    if arguments[:1] == ["--missing"]:
        missing = missing_parameters(*arguments[1:2])
        print(*sorted(missing), f"{len(missing)} parameters without a text", sep="\n")
        return 0
    folder = Path(*arguments) if arguments else REFERENCE
    folder.mkdir(exist_ok=True)
    for name, text in render_pages().items():
        (folder / f"{name}.md").write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "core"))
    sys.exit(main(sys.argv[1:]))
