"""Generate the imports of `dovetail/__init__.py`, tables of names and stubs.

They are generated from the `__all__`, the declarations and the signatures of the modules.
`python tools/faces.py` writes the files; `--check` compares them, and fails if they differ.
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
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType, SimpleNamespace

from namespace_stubs import NUMPY_VERSION, WIDTH, numpy_files, torch_files, wrap_call

ROOT = Path(__file__).resolve().parent.parent
CORE = ROOT / "core" / "dovetail"
INIT = CORE / "__init__.py"
LAZY_METHODS_FILE = CORE / "functions" / "lazy_methods.py"
METHOD_STUB_FILE = CORE / "tensor" / "signatures.pyi"
FUNCTION_STUB_FILE = CORE / "functions" / "elementwise" / "signatures.pyi"
SHOWN_STUB_FILE = CORE / "functions" / "shown.pyi"
SUBCLASS_STUB_FILE = CORE / "tensor" / "subclass.pyi"
SUBCLASS_STUB_FILE = CORE / "tensor" / "subclass.pyi"
TENSOR = re.compile(r"\b(?:dt\.)?Tensor\b")

RENAMED = {"bool_": "bool", "array_namespace_info": "__array_namespace_info__"}
MANUAL_NAMES = (  # in `__init__`
    "autograd", "e", "fft", "func", "inf", "linalg", "memory", "nan", "newaxis", "pi", "plugins",
    "random",
)  # fmt: skip
SHIPPED_LAYOUTS = ("sparse.plugin",)  # their methods are in the stub of Tensor

# The modules whose `__all__` `dt` exports, and those of which it exports the listed names.
EXPORTED_MODULES = (
    "autograd.nan_checks", "backend.naming", "backend.streams", "backend.threads",
    "capture.control_flow", "capture.jit", "capture.serialize", "device_class", "dtypes",
    "engine.provenance", "errors", "fft.short_time", "frontend.custom_op", "frontend.dsl",
    "frontend.elementwise_op", "frontend.loop_kernel", "frontend.raw_source", "functions.autocast",
    "functions.creation.constructors", "functions.creation.from_values",
    "functions.creation.grids", "functions.creation.windows", "functions.datatypes",
    "functions.elementwise.composed", "functions.elementwise.decompose",
    "functions.elementwise.op_functions", "functions.elementwise.special_functions",
    "functions.indexing.index_arrays", "functions.indexing.index_reads",
    "functions.indexing.index_reductions", "functions.indexing.index_writes",
    "functions.indexing.insert_delete", "functions.indexing.masks",
    "functions.indexing.selection", "functions.io.files", "functions.io.interop",
    "functions.evaluation", "functions.io.transfer", "functions.products.einsum",
    "functions.products.vector_products", "functions.reductions.covariance",
    "functions.reductions.cumulative", "functions.reductions.histograms",
    "functions.reductions.nan_functions", "functions.reductions.numerical",
    "functions.reductions.order_statistics", "functions.reductions.statistics",
    "functions.shape.copies", "functions.shape.joining", "functions.shape.manipulation",
    "functions.shape.orientation", "functions.shape.padding", "functions.shape.patches",
    "functions.shape.strides", "functions.sorting.distinct",
    "functions.sorting.lexsort_partition", "functions.sorting.set_operations",
    "functions.sorting.stable_sort", "functions.sorting.unique", "functions.torch_functions",
    "functions.torch_methods", "functions.torch_order_functions", "insight.explain",
    "insight.graph", "insight.profile", "insight.show", "layout", "linalg.polynomials",
    "linalg.torch_functions", "settings", "tensor.print_options", "tensor.tensor",
)  # fmt: skip
EXPORTED_NAMES: dict[str, str] = {
    **dict.fromkeys(EXPORTED_MODULES, ""),
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
        "# fmt: off", "# isort: off", "if _typing.TYPE_CHECKING:", *lines, "",
        "_PUBLIC_MODULES = {",
        *[format_home_entry(*item) for item in homes.items()], "}",
        "", f"__all__ = [\n{names}\n]", "if _typing.TYPE_CHECKING:", "    __all__ += [",
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


TYPED_WITH_CARE = ("autograd", "capture.jit", "func.vectorize")  # overloads, or generic types


def lenient_functions(name: str) -> list[str]:
    """Return the public functions of a module that also accept other libraries' parameters.

    They take further arguments, or have an axis that is also called `dim`.
    """
    if name in TYPED_WITH_CARE:
        return []
    functions = {n: getattr(module(name), n) for n in module(name).__all__}
    generated = {*generated_functions()} if name == "functions.elementwise.op_functions" else set()
    return [
        n for n, f in sorted(functions.items(), key=lambda item: name_sort_key(item[0]))
        if n not in generated and inspect.isfunction(f)
        and ("theirs" in raw_parameters(f) or {*foreign_names(f).values()} & {"dim", "keepdim"})
    ]  # fmt: skip


def raw_parameters(function: Callable[..., object]) -> Iterable[str]:
    """Return the parameters of a function, with those that its public signature hides."""
    raw = module("compat.keywords").raw_signature(inspect.unwrap(function))
    return typing.cast(inspect.Signature, raw).parameters


FOREIGN_NAMES = {  # of PyTorch's functions, by ours
    "x": "input", "x1": "input", "x2": "other",
    "axis": "dim", "axes": "dims", "keepdims": "keepdim",
}  # fmt: skip


def foreign_names(function: Callable[..., object]) -> dict[str, str]:
    """Return PyTorch's names of the parameters of a function, by ours; those it accepts."""
    keywords, inner = module("compat.keywords"), inspect.unwrap(function)
    if not hasattr(function, "widen") and "theirs" not in raw_parameters(function):
        return {}
    own = keywords.parameters(inner)
    positional = [n for n, p in own.items() if p.kind in keywords.POSITIONAL_KINDS]
    names = {}
    for ours, theirs in FOREIGN_NAMES.items():
        if ours in own and theirs not in own:
            try:
                keywords.require_same_results(inner.__name__, {theirs: 0})
                translated = keywords.translate_keyword(inner, theirs, 0, positional)
            except TypeError:
                continue
            if translated == (ours, 0):
                names[ours] = theirs
    return names


def with_foreign_names(parts: list[str], names: dict[str, str]) -> list[list[str]]:
    """Return the parameters of a function, and those of an overload with PyTorch's names."""
    renamed = [re.sub(r"^\w+", lambda m: names.get(m[0], m[0]), p) for p in parts if p != "/"]
    return [parts, renamed] if names else [parts]


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


def imported_value(line: str) -> object:
    """Return the value that an import fetches, or the line itself for one of type checkers."""
    home, _, name = line.removeprefix("from ").partition(" import ")
    found = home.startswith("dovetail") and importlib.import_module(home)
    return getattr(found, name.partition(" as ")[0], line)


def format_default(default: object) -> str:
    """Return the text of a default if it is a plain value, else "..."."""
    plain = (bool, int, float, type(None))
    if isinstance(default, str):
        return json.dumps(default)  # with the quotes of the formatter
    return repr(default) if isinstance(default, plain) or default == () else "..."


class Stub:
    """A stub file: formatted signatures, and the imports that they need.

    result_class: the class that results have in place of Tensor.
    """

    def __init__(self, result_class: str = "Tensor") -> None:
        self.imports: dict[str, str] = {}
        self.result_class = result_class

    def format_annotation(self, annotation: object, home: str) -> str:
        """Return the text of an annotation in the module `home`, and import its names."""
        text = annotation if isinstance(annotation, str) else "Any"
        for node in ast.walk(ast.parse(f"[{text}]", mode="eval")):  # it may begin with a star
            if isinstance(node, ast.Name) and not hasattr(builtins, node.id):
                fetched = import_origins(home)[node.id]
                before = self.imports.setdefault(node.id, fetched)
                if before != fetched and imported_value(before) is not imported_value(fetched):
                    other = node.id + home.rpartition(".")[2].title().replace("_", "")
                    self.imports[other] = f"{fetched.partition(' as ')[0]} as {other}"
                    text = re.sub(rf"\b{node.id}\b", other, text)
        return text

    def format_parameters(
        self, function: Callable[..., object], method: bool
    ) -> tuple[list[str], str]:
        """Return the formatted parameters of a function and its return annotation."""
        home = typing.cast(typing.Any, inspect.unwrap(function)).__globals__["__name__"]
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
        """Yield the lines of a function or, if indented, of a method, for each of its overloads."""
        names = foreign_names(value)
        if indent:  # the first operand is `self`
            names = {ours: theirs for ours, theirs in names.items() if theirs != "input"}
        signatures: list[tuple[list[str], str]] = []
        for declared in declared_overloads(value) or [value]:
            parts, result = self.format_parameters(declared, bool(indent))
            signatures += [(way, result) for way in with_foreign_names(parts, names)]
        if not indent and "more" in raw_parameters(value):
            signatures += [(way, result) for way in overloads(parts)]
        signatures = [(way, TENSOR.sub(self.result_class, result)) for way, result in signatures]
        if len(signatures) > 1:
            self.imports["overload"] = "from typing import overload"
        doc = (inspect.getdoc(value) or "").partition("\n")[0].replace("\\", "\\\\")
        for i, (signature, result) in enumerate(signatures):
            if len(signatures) > 1:
                yield f"{indent}@overload"
            tail = f") -> {result}:" if doc and not i else f") -> {result}: ..."
            yield from wrap_call(f"{indent}def {name}(", signature, tail, indent)
            if doc and not i:
                yield textwrap.indent("\n".join(textwrap.wrap(f'"""{doc}"""', 90)), f"{indent}    ")

    def method(self, name: str, value: object) -> Iterator[str]:
        """Yield the lines of a method; a property becomes an attribute, for layouts to override."""
        indent = " " * 4
        if isinstance(value, property):
            assert value.fget is not None
            result = self.format_parameters(value.fget, True)[1]
            yield f"{indent}{name}: {TENSOR.sub(self.result_class, result)}"
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
            "# fmt: off",
            "# isort: off",
        ]
        return "\n".join([*head, "", *plain, "", *body]) + "\n"


def declared_overloads(function: Callable[..., object]) -> Sequence[Callable[..., object]]:
    """Return the overloads in the source of a function; its `__module__` may be public."""
    plain = inspect.unwrap(function)
    if not inspect.isfunction(plain):
        return ()
    key = SimpleNamespace(__module__=plain.__globals__["__name__"], __qualname__=plain.__qualname__)
    return typing.get_overloads(key)  # type: ignore[arg-type]  # it reads these attributes


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
            home = home.removeprefix(package).replace("dovetail.", ".", 1)
            by_module.setdefault(home, []).append(name)
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


def subclass_stub() -> str:
    """Return the text of `tensor/subclass.pyi`: a Tensor whose results have its own class."""
    stub, lines = Stub("Self"), []
    attached = ast.parse((CORE / "tensor" / "attached.pyi").read_text())
    for node in (n for c in attached.body if isinstance(c, ast.ClassDef) for n in c.body):
        if isinstance(node, ast.FunctionDef) and TENSOR.search(ast.unparse(node.returns or node)):
            node.returns = ast.Name(TENSOR.sub("Self", ast.unparse(node.returns or node)))
            ignored = "  # type: ignore[override]  # elementwise"
            comment = ignored if node.name in ("__eq__", "__ne__") else ""
            text = ast.unparse(node).removesuffix("\n    ...") + f" ...{comment}"
            lines.append(textwrap.indent(text, "    "))
    for name, f in methods().items():
        text = [*stub.method(name, f)]
        if any("Self" in line for line in text):
            lines += text
    stub.imports |= {
        "Self": "from typing import Self",
        "Iterator": "from collections.abc import Iterator",
        "Tensor": "from dovetail.tensor.tensor import Tensor",
    }
    text = stub.render(
        "the base of subclasses of Tensor, whose results have the subclass.",
        ["class TensorSubclass(Tensor):", *lines],
    )
    return f"# ruff: noqa\n{text}"  # the imports are those of all methods


def function_stub() -> str:
    """Return the text of `elementwise/signatures.pyi`: the functions of the op table."""
    stub, elementwise = Stub(), module("functions.elementwise.op_functions")
    lines = [x for n in generated_functions() for x in stub.function(n, getattr(elementwise, n))]
    return stub.render("the functions that are rows of the op table.", lines)


def overloads(parts: list[str]) -> list[list[str]]:
    """Return further overloads of a function that takes more arguments by position.

    A function that creates tensors has some with separate sizes and with a positional dtype.
    """
    star = parts.index("*") if "*" in parts else len(parts)
    creates = {"dtype: DTypeLike = None", "device: DeviceLike = None"} <= {*parts[star:]}
    if not creates or "axis: Axis = None" in parts:
        return []
    places = [p for p in parts[:star] if p != "/"]
    named = [p for p in parts[star:] if not p.startswith("dtype: ")]
    ways = [[*places, "dtype: DTypeLike", "/", *named]]
    if len(places) == 1 and places[0].startswith("shape"):
        ways.append(["shape: int", "/", "*more: int", *parts[star + 1 :]])
    return ways


def shown_stub() -> str:
    """Return the text of `functions/shown.pyi`: functions that accept foreign arguments, too."""
    stub, lines = Stub(), []
    for name in EXPORTED_NAMES:
        for n in lenient_functions(name):
            lines += stub.function(n, getattr(module(name), n))
    parts, result = stub.format_parameters(type(module("tensor")).__call__, True)
    lines += wrap_call("def tensor(", parts[1:], f") -> {result}: ...")  # a callable package
    return stub.render("functions that also accept other libraries' parameters.", lines)


# --- stubs of packages ---------------------------------------------------------------------------

# Packages that export the `__all__` of their modules; type checkers cannot infer these names.
STUBBED_PACKAGES = (
    "data",
    "distributions",
    "metrics",
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
        SUBCLASS_STUB_FILE: subclass_stub(),
        **{CORE / "numpy" / n: text for n, text in numpy_files(module("numpy")).items()},
        **{CORE / "torch" / n: text for n, text in torch_files(module("torch"), Stub).items()},
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
        other_numpy = path.parent.name == "numpy" and f"NumPy {NUMPY_VERSION}," not in have
        if have != want and not (have and other_numpy):
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
    """Write the files, or compare with `--check`; return the exit status."""
    load()
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
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(wanted[path])
        print(path.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
