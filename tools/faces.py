"""Generate the imports of `dovetail/__init__.py`, tables of names, stubs and reference pages.

They are generated from the `__all__`, the declarations, signatures and docstrings of the modules.
`python tools/faces.py` writes the files; `--check` compares them, and fails if they differ.
`--reference` writes the reference pages, which the site builds and git ignores.
"""

from __future__ import annotations

import ast
import builtins
import difflib
import importlib
import importlib.util
import inspect
import json
import os
import re
import sys
import textwrap
import typing
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent
CORE = ROOT / "core" / "dovetail"
INIT = CORE / "__init__.py"
LAZY_METHODS_FILE = CORE / "functions" / "lazy_methods.py"
METHOD_STUB_FILE = CORE / "tensor" / "signatures.pyi"
FUNCTION_STUB_FILE = CORE / "functions" / "elementwise" / "signatures.pyi"
SHOWN_STUB_FILE = CORE / "functions" / "shown.pyi"
REFERENCE = ROOT / "docs" / "reference"
WIDTH = 100

RENAMED = {"bool_": "bool", "array_namespace_info": "__array_namespace_info__"}
MANUAL_NAMES = (  # in `__init__`
    "autograd", "e", "fft", "func", "inf", "linalg", "memory", "nan", "newaxis", "pi", "plugins",
    "random",
)  # fmt: skip
SHIPPED_LAYOUTS = ("sparse.plugin",)  # their methods are in the stub of Tensor

# The reference: page -> (title, documented modules -> the namespace of their names in `dt`).
PAGES: dict[str, tuple[str, dict[str, str]]] = {
    "tensor": ("The tensor", {"tensor.tensor": "", "tensor.host": ""}),
    "creation": (
        "Making tensors",
        {
            "functions.creation.from_values": "",
            "functions.creation.constructors": "",
            "functions.creation.grids": "",
            "functions.io.interop": "",
            "functions.creation.windows": "",
            "functions.io.files": "",
        },
    ),
    "datatypes": ("Dtypes", {"dtypes": "", "functions.datatypes": ""}),
    "elementwise": (
        "Elementwise functions",
        {
            "functions.elementwise.op_functions": "",
            "functions.elementwise.special_functions": "",
            "functions.elementwise.decompose": "",
            "functions.elementwise.composed": "",
        },
    ),
    "reductions": (
        "Reductions and running sums",
        {
            "functions.reductions.statistics": "",
            "functions.reductions.cumulative": "",
            "functions.reductions.nan_functions": "",
            "functions.reductions.order_statistics": "",
            "functions.reductions.covariance": "",
            "functions.reductions.histograms": "",
            "functions.reductions.numerical": "",
        },
    ),
    "shapes": (
        "Shapes and arrangement",
        {
            "functions.shape.manipulation": "",
            "functions.shape.copies": "",
            "functions.shape.joining": "",
            "functions.shape.orientation": "",
            "functions.shape.padding": "",
            "functions.shape.patches": "",
            "functions.shape.strides": "",
        },
    ),
    "indexing": (
        "Indexing, sorting and sets",
        {
            "functions.indexing.index_reads": "",
            "functions.indexing.masks": "",
            "functions.indexing.index_writes": "",
            "functions.indexing.selection": "",
            "functions.indexing.index_arrays": "",
            "functions.indexing.insert_delete": "",
            "functions.sorting.stable_sort": "",
            "functions.sorting.distinct": "",
            "functions.sorting.set_operations": "",
            "functions.sorting.unique": "",
            "functions.sorting.lexsort_partition": "",
        },
    ),
    "torch": (
        "Functions under PyTorch's names",
        {
            "functions.torch_functions": "",
            "functions.torch_methods": "",
            "linalg.torch_functions": "",
        },
    ),
    "linalg": (
        "Linear algebra",
        {
            "functions.products.matrix_products": "linalg",
            "functions.products.vector_products": "",
            "functions.products.einsum": "",
            "linalg.solving": "linalg",
            "linalg.triangular": "linalg",
            "linalg.eigenvalues": "linalg",
            "linalg.factors": "linalg",
            "linalg.least_squares": "linalg",
            "linalg.norms": "linalg",
            "linalg.matrix_functions": "linalg",
            "linalg.polynomials": "",
        },
    ),
    "fft": (
        "Fourier transforms",
        {
            "fft.transforms": "fft",
            "fft.real_transforms": "fft",
            "fft.frequencies": "fft",
        },
    ),
    "random": (
        "Random numbers",
        {
            "functions.random": "random",
            "functions.random.samplers": "random",
            "functions.random.discrete_samplers": "random",
        },
    ),
    "gradients": ("Gradients", {"autograd": "autograd"}),
    "transforms": ("Transforms of functions", {"func": "func"}),
    "devices": (
        "Devices, streams and layouts",
        {
            "device_class": "",
            "backend.naming": "",
            "plugins.registry": "plugins",
            "backend.streams": "",
            "backend.threads": "",
            "functions.io.transfer": "",
            "layout": "",
        },
    ),
    "memory": ("Memory", {"memory": "memory"}),
    "insight": (
        "When and how work runs",
        {
            "insight.explain": "",
            "insight.profile": "",
            "insight.show": "",
            "insight.graph": "",
            "autograd.nan_checks": "",
            "engine.provenance": "",
            "settings": "",
            "tensor.print_options": "",
        },
    ),
    "jit": (
        "Captured functions",
        {
            "capture.jit": "",
            "capture.control_flow": "",
            "capture.serialize": "",
            "tree": "tree",
        },
    ),
    "kernels": (
        "Kernels of one's own",
        {
            "frontend.elementwise_op": "",
            "frontend.custom_op": "",
            "frontend.loop_kernel": "",
            "frontend.dsl": "",
            "frontend.raw_source": "",
        },
    ),
    "nn": ("Layers", {"nn.modules": "nn"}),
    "functional": ("Functions of networks", {"nn.functional": "nn.functional"}),
    "optim": ("Optimisers", {"optim": "optim"}),
    "data": ("Data sets and loaders", {"data": "data"}),
    "distributions": ("Distributions", {"distributions": "distributions"}),
    "onnx": ("ONNX", {"onnx": "onnx"}),
    "checkpoints": (
        "Checkpoints and logs",
        {"checkpoint": "checkpoint", "tensorboard": "tensorboard"},
    ),
    "errors": ("Errors", {"errors": ""}),
}
# The modules whose names `dt` exports, as listed, or all of `__all__`: those of the pages above
# without a namespace, and others.
EXPORTED_NAMES: dict[str, str] = {
    **{m: "" for _, modules in PAGES.values() for m, prefix in modules.items() if not prefix},
    "autograd": "enable_grad grad inference_mode is_grad_enabled is_inference_mode_enabled no_grad "
    "set_grad_enabled",
    "func.vectorize": "",
    "functions.products.matrix_products": "matmul matrix_transpose outer tensordot vecdot "
    "vendor_products",
    "memory.storage": "",
    "plugins.registry": "devices",
}
EXPORTED_NAMES = dict(sorted(EXPORTED_NAMES.items()))


def module(name: str) -> ModuleType:
    """Return a module of dovetail by its name within it."""
    return importlib.import_module(f"dovetail.{name}")


def name_sort_key(name: str) -> tuple[int, list[int | str]]:
    """Return the sort key of a name: constants, classes, others; numbers by value."""
    kind = 0 if name.isupper() else 1 if name[0].isupper() else 2
    return kind, [int(p) if p.isdigit() else p for p in re.split(r"(\d+)", name)]


# --- dovetail/__init__.py ------------------------------------------------------------------------

GENERATED_BEGIN = "# --- written by tools/faces.py from the `__all__` of the modules"
GENERATED_END = "# --- as far as here"


def format_import(name: str, names: list[str], indent: str = "") -> str:
    """Return an import of names from a module, in one line or in several."""
    one = f"{indent}from .{name} import {', '.join(names)}"
    several = f"{indent}from .{name} import (\n{wrap_names(names, indent + ' ' * 4)}\n{indent})"
    return one if len(one) <= WIDTH else several


def wrap_names(names: Iterable[str], indent: str = " " * 4) -> str:
    """Return names in indented lines of at most `WIDTH` columns."""
    return textwrap.fill(
        ", ".join(names) + ",", WIDTH, initial_indent=indent, subsequent_indent=indent
    )


def render_namespace() -> str:
    """Return the text of `__init__.py` with the public names of the modules.

    Type checkers read the imports; at run time `_PUBLIC_MODULES` maps a name to its module.
    """
    lines, public, homes = [], [*MANUAL_NAMES], {}
    lenient_names: list[str] = []  # type checkers see them in `format_default.pyi`
    for name, some in EXPORTED_NAMES.items():
        names_of_module = some.split() or sorted(module(name).__all__, key=name_sort_key)
        public += [RENAMED.get(n, n) for n in names_of_module]
        homes[name] = " ".join(f"{RENAMED[n]}:{n}" if n in RENAMED else n for n in names_of_module)
        lenient_names += (own := [n for n in lenient_functions(name) if n in names_of_module])
        renamed = [
            f"{n} as {RENAMED[n]}" if n in RENAMED else n for n in names_of_module if n not in own
        ]
        lines += [format_import(name, renamed, " " * 4)] if renamed else []
    lines += [format_import("functions.shown", sorted(lenient_names, key=name_sort_key), " " * 4)]
    lines += alias_imports(homes, lenient_names)
    aliases = sorted(
        n for names in module("compat.aliases").ALIASES[""].values() for n in names.split()
    )
    twice = sorted({n for n in public if public.count(n) > 1})
    assert not twice, f"in several modules: {twice}"
    names = wrap_names(f'"{n}"' for n in sorted(public, key=name_sort_key))
    text = INIT.read_text()
    head, _, rest = text.partition(GENERATED_BEGIN)
    begin, _, rest = rest.partition("\n")
    _, end, tail = rest.partition(GENERATED_END)
    assert end, f"{INIT} has no line that begins {GENERATED_END!r}"
    written = [
        "# fmt: off", "# isort: off", "if typing.TYPE_CHECKING:", *lines, "", "_PUBLIC_MODULES = {",
        *[format_home_entry(*item) for item in homes.items()], "}",
        "", f"__all__ = [\n{names}\n]", "if typing.TYPE_CHECKING:", "    __all__ += [",
        wrap_names((f'"{n}"' for n in aliases), " " * 8), "    ]", "# fmt: on", "# isort: on",
    ]  # fmt: skip
    return f"{head}{GENERATED_BEGIN}{begin}\n" + "\n".join(written) + f"\n{GENERATED_END}{tail}"


def alias_imports(homes: dict[str, str], lenient_names: list[str]) -> list[str]:
    """Return the imports of exact synonyms, which type checkers know and `dir` does not list.

    homes: the public names of each module. lenient_names: those in the stub `functions.shown`.
    """
    home_by_name = {
        public: (home, source or public)
        for home, names in homes.items()
        for public, _, source in (n.partition(":") for n in names.split())
    }
    home_by_name |= {n: ("functions.shown", n) for n in lenient_names}
    by_home: dict[str, list[str]] = {}
    for ours, names in module("compat.aliases").ALIASES[""].items():
        package, _, last = ours.rpartition(".")
        home, source = home_by_name.get(ours, (package, last))
        home = {"random": "functions.random"}.get(home, home)
        by_home.setdefault(home, []).extend(f"{source} as {n}" for n in names.split())
    return [format_import(home, sorted(by_home[home]), " " * 4) for home in sorted(by_home)]


def format_home_entry(name: str, names: str) -> str:
    """Return the entry of a module in `_PUBLIC_MODULES`: its names, in lines of strings."""
    one = f'    "{name}": "{names}",'
    if len(one) <= WIDTH:
        return one
    parts = textwrap.wrap(names, WIDTH - 12, drop_whitespace=False)
    return f'    "{name}":\n' + "\n".join(f'        "{part}"' for part in parts) + ","


# --- signatures ----------------------------------------------------------------------------------


TYPED_GENERICALLY = ("capture.jit", "func.vectorize")  # generic in the type of a function


def lenient_functions(name: str) -> list[str]:
    """Return the public functions of a module that also accept other libraries' parameters."""
    if name in TYPED_GENERICALLY:
        return []
    functions = {n: getattr(module(name), n) for n in module(name).__all__}
    generated = {*generated_functions()} if name == "functions.elementwise.op_functions" else set()
    return [
        n for n, f in sorted(functions.items(), key=lambda item: name_sort_key(item[0]))
        if n not in generated and inspect.isfunction(f)
        and "theirs" in inspect.signature(f).parameters
    ]  # fmt: skip


def generated_functions() -> list[str]:
    """Return the functions that are generated from the op table, without a `def`."""
    elementwise = module("functions.elementwise.op_functions")
    written = {
        n.name
        for n in ast.parse(Path(str(elementwise.__file__)).read_text()).body
        if isinstance(n, ast.FunctionDef)
    }
    return sorted({*elementwise.__all__} - written, key=name_sort_key)


@cache
def import_origins(name: str) -> dict[str, str]:
    """Return, by top-level name of a module, the import of the name from its own module."""
    source = ast.parse(Path(str(sys.modules[name].__file__)).read_text())
    is_package = hasattr(sys.modules[name], "__path__")
    imports: dict[str, str] = {}
    for node in ast.walk(source):
        if isinstance(node, ast.ImportFrom):
            dots = "." * node.level + (node.module or "")
            package = name if is_package else name.rpartition(".")[0]
            base = importlib.util.resolve_name(dots, package) if node.level else dots
            for a in node.names:
                imports[a.asname or a.name] = f"from {base} import {a.name}" + (
                    f" as {a.asname}" if a.asname else ""
                )
        elif isinstance(node, ast.Import):
            for a in node.names:
                imports[a.asname or a.name] = f"import {a.name}" + (
                    f" as {a.asname}" if a.asname else ""
                )
    for node in source.body:
        if isinstance(node, ast.ClassDef):
            imports[node.name] = f"from {name} import {node.name}"
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for t in targets:
                if isinstance(t, ast.Name):
                    imports[t.id] = f"from {name} import {t.id}"
    return imports


def format_default(default: object) -> str:
    """Return the text of a default if it is a plain value, else "..."."""
    plain = (bool, int, float, type(None))
    if isinstance(default, str):
        return json.dumps(default)  # with the quotes of the formatter
    return repr(default) if isinstance(default, plain) or default == () else "..."


class Stub:
    """A stub file: formatted signatures, and the imports that they need."""

    def __init__(self) -> None:
        self.imports: dict[str, str] = {}

    def format_annotation(self, annotation: object, home: str) -> str:
        """Return the text of an annotation in the module `home`, and import its names."""
        text = annotation if isinstance(annotation, str) else "Any"
        for node in ast.walk(ast.parse(f"[{text}]", mode="eval")):  # it may begin with a star
            if isinstance(node, ast.Name) and not hasattr(builtins, node.id):
                fetched = import_origins(home)[node.id]
                before = self.imports.setdefault(node.id, fetched)
                assert before == fetched, f"two types of one name: {before!r} and {fetched!r}"
        return text

    def format_parameters(
        self, function: Callable[..., object], method: bool
    ) -> tuple[list[str], str]:
        """Return the formatted parameters of a function and its return annotation."""
        home = inspect.unwrap(function).__module__
        signature = inspect.signature(function)
        parameters = [p for p in signature.parameters.values() if p.name not in ("more", "theirs")]
        parameters = parameters[method:]
        parts = ["self"] if method else []
        for i, p in enumerate(parameters):
            if p.kind is p.KEYWORD_ONLY and not any(
                q.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL) for q in parameters[:i]
            ):
                parts.append("*")
            stars = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
            needed = p.default is p.empty or type(p.default).__name__ == "_Missing"
            default = "" if needed else f" = {format_default(p.default)}"
            parts.append(f"{stars}{p.name}: {self.format_annotation(p.annotation, home)}{default}")
            last = i + 1 == len(parameters) or parameters[i + 1].kind is not p.POSITIONAL_ONLY
            if p.kind is p.POSITIONAL_ONLY and last:
                parts.append("/")
        return parts, self.format_annotation(signature.return_annotation, home)

    def function(self, name: str, value: Callable[..., object], indent: str = "") -> Iterator[str]:
        """Yield the lines of a function or, if indented, of a method."""
        parts, result = self.format_parameters(value, bool(indent))
        yield from wrap_call(f"{indent}def {name}(", parts, f") -> {result}: ...", indent)

    def method(self, name: str, value: object) -> Iterator[str]:
        """Yield the lines of a method; a property becomes an attribute, for layouts to override."""
        indent = " " * 4
        if isinstance(value, property):
            assert value.fget is not None
            yield f"{indent}{name}: {self.format_parameters(value.fget, True)[1]}"
        else:
            yield from self.function(name, typing.cast(Callable[..., object], value), indent)

    def render(self, description: str, lines: Iterable[str]) -> str:
        """Return the text of the stub."""
        body = list(lines)  # first: a lazy iterable collects the imports
        plain = sorted({i for i in self.imports.values() if i.startswith("import ")})
        by_module: dict[str, list[str]] = {}
        for line in self.imports.values():
            if line.startswith("from "):
                where, _, what = line.removeprefix("from ").partition(" import ")
                by_module.setdefault(where, []).append(what)
        for where in sorted(by_module):
            names = sorted(by_module[where], key=name_sort_key)
            plain.append(f"from {where} import {', '.join(names)}")
        head = [
            "# Written by tools/faces.py for type checkers:",
            f"# {description}",
            "# isort: off",
        ]
        return "\n".join([*head, "", *plain, "", *body]) + "\n"


def wrap_call(head: str, parts: list[str], tail: str, indent: str = "") -> Iterator[str]:
    """Yield a call in one line, with its parts in a second line, or with a line for each part."""
    inside = ", ".join(parts)
    if len(head + inside + tail) <= WIDTH:
        yield head + inside + tail
    elif len(indent) + 4 + len(inside) <= WIDTH:
        yield from (head, f"{indent}    {inside}", f"{indent}{tail}")
    else:
        yield from (head, *(f"{indent}    {p}," for p in parts), f"{indent}{tail}")


@cache
def collect_methods() -> dict[str, Callable[..., object]]:
    """Return the methods that the functions declare, by name."""
    for path in sorted((CORE / "functions").rglob("*.py")):
        module(".".join(path.relative_to(CORE).with_suffix("").parts).removesuffix(".__init__"))
    tables = module("declarations")
    names = sorted({*tables.METHODS, *tables.IN_PLACE_METHODS}, key=name_sort_key)
    return {name: module("functions.methods").method_by_name(name) for name in names}


def lazy_methods() -> str:
    """Return the text of `functions/lazy_methods.py`."""
    package, finder = "dovetail.functions.", module("functions.methods")
    by_module: dict[str, list[str]] = {}
    for name in collect_methods():
        if (home := finder.declaring_module(name)) not in finder.LOADED_MODULES:
            by_module.setdefault(home.removeprefix(package), []).append(name)
    lines = [
        '"""Methods that `public` declares in modules that are loaded at their first use.',
        "",
        "Written by tools/faces.py.",
        '"""',
        "",
        "LAZY_METHODS = {  # module -> methods",
    ]
    for home in sorted(by_module):
        names = " ".join(by_module[home])
        one = f'    "{home}": "{names}",'
        parts = textwrap.wrap(names, WIDTH - 12, drop_whitespace=False)
        several = [f'    "{home}": (', *(f'        "{part}"' for part in parts), "    ),"]
        lines += [one] if len(one) <= WIDTH else several
    return "\n".join([*lines, "}"]) + "\n"


def methods() -> dict[str, object]:
    """Return the methods of Tensor that its class body does not define, by name."""
    methods_by_name = {
        **collect_methods(),
        **module("functions.methods").PROPERTIES,
        **module("autograd.engine").TENSOR_METHODS,
    }
    for name in SHIPPED_LAYOUTS:
        methods_by_name |= module(name).dovetail_layout_info().methods
    methods_by_name.pop("__getattr__")  # type checkers must report unknown names
    return dict(sorted(methods_by_name.items(), key=lambda item: name_sort_key(item[0])))


def method_stub() -> str:
    """Return the text of `tensor/signatures.pyi`."""
    stub = Stub()
    by_name = methods()
    lines = [line for name, f in by_name.items() for line in stub.method(name, f)]
    aliases = module("compat.aliases").ALIASES
    for ours, names in {**aliases[""], **aliases["Tensor"]}.items():
        if ours in by_name:
            lines += [f"    {n} = {ours}" for n in names.split() if n not in by_name]
    return stub.render(
        "the methods of Tensor that its class does not define.", ["class Methods:", *lines]
    )


def function_stub() -> str:
    """Return the text of `elementwise/signatures.pyi`: the functions of the op table."""
    stub, elementwise = Stub(), module("functions.elementwise.op_functions")
    lines = [x for n in generated_functions() for x in stub.function(n, getattr(elementwise, n))]
    return stub.render("the functions that are rows of the op table.", lines)


def overloads(parts: list[str], more: bool) -> list[list[str]]:
    """Return the overloads of a function, each as a list of parameters.

    more: True if the function creates tensors and takes further sizes. It then has overloads with
    separate sizes and with a positional dtype.
    """
    star = parts.index("*") if "*" in parts else len(parts)
    creates = {"dtype: DTypeLike = None", "device: DeviceLike = None"} <= {*parts[star:]}
    if not more or not creates or "axis: Axis = None" in parts:
        return [parts]
    places = [p for p in parts[:star] if p != "/"]
    named = [p for p in parts[star:] if not p.startswith("dtype: ")]
    overload_parts = [parts, [*places, "dtype: DTypeLike", "/", *named]]
    one_by_one = ["shape: int", "/", "*more: int", *parts[star + 1 :]]
    return (
        [*overload_parts, one_by_one]
        if len(places) == 1 and places[0].startswith("shape")
        else overload_parts
    )


def shown_stub() -> str:
    """Return the text of `functions/shown.pyi`: the functions with lenient signatures."""
    stub, lines = Stub(), []
    for name in EXPORTED_NAMES:
        for n in lenient_functions(name):
            function = getattr(module(name), n)
            signatures = []
            for declared in typing.get_overloads(function) or [function]:
                parts, result = stub.format_parameters(declared, False)
                has_more = "more" in inspect.signature(function).parameters
                signatures += [(way, result) for way in overloads(parts, has_more)]
            for way, result in signatures:
                lines += ["@overload"] if len(signatures) > 1 else []
                lines += wrap_call(f"def {n}(", way, f") -> {result}: ...")
    stub.imports["overload"] = "from typing import overload"
    return stub.render("functions that also accept other libraries' parameters.", lines)


# --- reference pages -----------------------------------------------------------------------------


LABEL = re.compile(
    r"^(?=[A-Z][a-z]+(?: [a-z]+)?: |(?:`\w+`(?:, )?)+: )"
)  # `Shapes: ...`, `axis`: ...


def docstring_markdown(doc: str | None) -> str:
    """Return a docstring as Markdown: fenced examples, and a list of labels and parameters."""
    lines: list[str] = []
    fenced = item = False
    for line in inspect.cleandoc(doc or "").splitlines():
        if line.startswith(">>>") and not fenced:
            lines.append("```python")
            fenced = True
        elif fenced and not line:
            lines.append("```")
            fenced = False
        if not fenced and not line.startswith("    "):
            line = re.sub(r"(`[^`]*`)|\*", lambda m: m[1] or r"\*", line)
            begins = bool(lines) and LABEL.match(line) is not None
            if begins and lines[-1] and not item:
                lines.append("")
            item = begins or (item and bool(line))
            line = f"- {line}" if begins else f"  {line}" if item else line
        lines.append(line)
    return "\n".join([*lines, *(["```"] if fenced else [])])


def signature_markdown(name: str, value: Callable[..., object], method: bool = False) -> str:
    """Return the signature of a function in a fenced block."""
    try:
        parts, result = Stub().format_parameters(value, method)
    except (ValueError, TypeError):  # a class without a signature of its own
        return ""
    tail = f") -> {result}" if result != "Any" else ")"
    lines = wrap_call(f"{name}(", parts[1:] if method else parts, tail)
    return "```python\n" + "\n".join(lines) + "\n```\n"


def entry(name: str, value: object) -> str:
    """Return the Markdown of a function or a class, with its heading."""
    text = f"### {name.removeprefix('dt.')}\n\n"
    if inspect.isclass(value):
        members = [
            f"#### {name.rpartition('.')[2]}.{n}\n\n{shape}" for n, shape in public_members(value)
        ]
        return "\n\n".join([text + docstring_markdown(value.__doc__), *members])
    return (
        text
        + signature_markdown(name, typing.cast(Callable[..., object], value))
        + "\n"
        + docstring_markdown(value.__doc__)
    )


def public_members(kind: type) -> Iterator[tuple[str, str]]:
    """Yield name and Markdown of the public members that a class itself defines and documents."""
    for name, value in vars(kind).items():
        if name.startswith("_") or not getattr(value, "__doc__", None):
            continue
        if inspect.isfunction(value):
            yield (
                name,
                signature_markdown(f"{kind.__name__}.{name}", value, True)
                + "\n"
                + docstring_markdown(value.__doc__),
            )
        elif isinstance(value, property | classmethod | staticmethod):
            yield name, docstring_markdown(value.__doc__)


def module_entries(name: str, prefix: str) -> Iterator[str]:
    """Yield the entries of a module for a page, and one entry for its constants."""
    namespace, constants = sys.modules["dovetail"], []
    for own in sorted(module(name).__all__, key=name_sort_key):
        value, public = getattr(module(name), own), RENAMED.get(own, own)
        is_there = getattr(namespace, public, None) is value
        full = f"dt.{public}" if is_there or not prefix else f"dt.{prefix}.{public}"
        if inspect.isclass(value) or inspect.isroutine(value):
            yield entry(full, value) if own != "Tensor" else tensor_entry(value)
        else:
            constants.append(f"`{full}`")
    if constants:
        yield "\n".join(["### Constants", "", ", ".join(constants) + "."])


def tensor_entry(kind: type) -> str:
    """Return the entry of Tensor: its own members, and links to functions that are methods."""
    attached = methods()
    own = [f"#### Tensor.{n}\n\n{text}" for n, text in public_members(kind) if n not in attached]
    rest, same, in_place, other = [], [], [], []
    anchors = {
        id(getattr(module(m), n)): (f"{page}.md#{n.lower()}", n)
        for page, (_, modules) in PAGES.items()
        for m, prefix in modules.items()
        for n in (*module(m).__all__,)
        if not prefix or n in EXPORTED_NAMES.get(m, "").split()
    }
    for name, value in attached.items():
        link, function = anchors.get(id(value), ("", ""))
        if name.startswith("_"):
            continue
        if link and name == function:
            same.append(f"[{name}]({link})")
        elif link:
            other.append(f"`{name}` is [{function}]({link})")
        elif str(value.__doc__).startswith("Write the result of `dt."):
            in_place.append(f"`{name}`")
        elif isinstance(value, property):
            rest.append(f"#### Tensor.{name}\n\n{docstring_markdown(value.__doc__)}")
        else:
            shape = signature_markdown(
                f"Tensor.{name}", typing.cast(Callable[..., object], value), True
            )
            rest.append(f"#### Tensor.{name}\n\n{shape}\n{docstring_markdown(value.__doc__)}")
    listed = (
        ("### Functions that are methods too", ", ".join(same) + "."),
        ("### Methods under other names", "; ".join(other) + "."),
        ("### Methods that write their result into the tensor", ", ".join(in_place) + "."),
    )
    head = f"### Tensor\n\n{docstring_markdown(kind.__doc__)}"
    return "\n\n".join([head, *own, *rest, *(f"{title}\n\n{text}" for title, text in listed)])


def pages() -> dict[Path, str]:
    """Return the text of each page of the reference and of its index."""
    texts = {}
    lines = ["# Reference", "", "Every public name, and how it is called.", ""]
    for page, (title, modules) in PAGES.items():
        text = [f"# {title}", "[All pages](README.md)"]
        for name, prefix in modules.items():
            text += [docstring_markdown(module(name).__doc__)] if prefix else []
            text += module_entries(name, prefix)
        texts[REFERENCE / f"{page}.md"] = "\n\n".join(t.strip("\n") for t in text) + "\n"
        lines.append(f"- [{title}]({page}.md)")
    texts[REFERENCE / "README.md"] = "\n".join(lines) + "\n"
    return texts


# --- stubs of packages ---------------------------------------------------------------------------

# Packages that export the `__all__` of their modules; type checkers cannot infer these names.
STUBBED_PACKAGES = (
    "data",
    "distributions",
    "nn",
    "nn.functional",
    "nn.modules",
    "nn.utils",
    "optim",
)


def package_stub(name: str) -> str:
    """Return the stub of a package: an import of each name from the module that exports it."""
    package = module(name)
    inner = {n: m for n, m in vars(package).items() if isinstance(m, ModuleType)}
    lines = []
    for own in sorted(package.__all__):
        homes = [n for n, m in inner.items() if own in getattr(m, "__all__", ())]
        if own in inner:
            lines.append(f"from . import {own} as {own}")
        elif homes:
            at = inner[homes[0]].__name__.removeprefix(package.__name__)
            if not at.startswith("."):  # the module is a sibling of the package
                at = "." + at.removeprefix(package.__name__.rpartition(".")[0])
            lines.append(f"from {at} import {own} as {own}")
    return STUB_HEAD + "\n".join(sorted(lines)) + "\n"


STUB_HEAD = "# Written by tools/faces.py from the `__all__` of the modules.\n\n"


# --- commands ------------------------------------------------------------------------------------


def generated_files() -> dict[Path, str]:
    """Return the expected text of each generated file."""
    return {
        INIT: render_namespace(),
        LAZY_METHODS_FILE: lazy_methods(),
        METHOD_STUB_FILE: method_stub(),
        FUNCTION_STUB_FILE: function_stub(),
        SHOWN_STUB_FILE: shown_stub(),
        **{
            CORE / name.replace(".", "/") / "__init__.pyi": package_stub(name)
            for name in STUBBED_PACKAGES
        },
    }


def find_outdated() -> dict[Path, str]:
    """Return the outdated files, each with its diff to the expected text."""
    wanted, differences = generated_files(), {}
    for path, want in wanted.items():
        have = path.read_text() if path.exists() else ""
        if have != want:
            name = path.relative_to(ROOT).as_posix()
            lines = difflib.unified_diff(
                have.splitlines(), want.splitlines(), name, "generated", lineterm="", n=1
            )
            differences[path] = "\n".join(lines)
    return dict(sorted(differences.items()))


def load() -> None:
    """Import dovetail from this tree with a newly generated `__init__.py`.

    The file on disk may list names that no longer exist; its import would fail.
    """
    sys.path.insert(0, str(ROOT / "core"))
    spec = importlib.util.spec_from_file_location(
        "dovetail", INIT, submodule_search_locations=[str(CORE)]
    )
    assert spec is not None
    package = sys.modules["dovetail"] = importlib.util.module_from_spec(spec)
    os.environ["DOVETAIL_PURE"] = "1"  # compiled functions have incomplete signatures
    importlib.import_module("dovetail.build_info")  # first, as in `__init__`
    exec(compile(render_namespace(), str(INIT), "exec"), vars(package))


def main(arguments: list[str]) -> int:
    """Write the files, or the reference, or compare with `--check`; return the exit status."""
    load()
    if arguments == ["--reference"]:
        REFERENCE.mkdir(exist_ok=True)
        for path, text in pages().items():
            path.write_text(text)
        return 0
    differences = find_outdated()
    if arguments == ["--check"]:
        for difference in differences.values():
            print(difference)
        print(
            f"{len(differences)} files differ: run tools/faces.py"
            if differences
            else "all faces are true"
        )
        return bool(differences)
    wanted = generated_files()
    for path in differences:
        path.write_text(wanted[path])
        print(path.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
