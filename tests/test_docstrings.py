"""Every public docstring is complete, and its example is correct."""

from __future__ import annotations

import ast
import builtins
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dovetail as dt
import pytest
from dovetail import errors
from dovetail.tensor.host import READ_METHODS
from places import ROOT
from sessions import find_failures
from source_trees import parse_file, statements

SPACES: dict[str, Any] = {
    "dt": dt, "dt.fft": dt.fft, "dt.linalg": dt.linalg, "dt.random": dt.random,
    "dt.autograd": dt.autograd, "dt.memory": dt.memory,
    "dt.sparse": dt.sparse, "dt.sparse.linalg": dt.sparse.linalg, "dt.plugins": dt.plugins,
}  # fmt: skip
OF_NETWORKS: dict[str, Any] = {
    "dt.nn": dt.nn, "dt.nn.functional": dt.nn.functional, "dt.nn.init": dt.nn.init,
    "dt.nn.utils": dt.nn.utils, "dt.optim": dt.optim, "dt.optim.swa_utils": dt.optim.swa_utils,
    "dt.data": dt.data, "dt.metrics": dt.metrics,
    "dt.distributions": dt.distributions, "dt.onnx": dt.onnx, "dt.checkpoint": dt.checkpoint,
    "dt.tensorboard": dt.tensorboard, "dt.comm": dt.comm, "dt.extension": dt.extension,
    "dt.amp": dt.amp, "dt.parallel": dt.parallel, "dt.chunked": dt.chunked,
}  # fmt: skip
SPACES |= OF_NETWORKS
NETWORKS = tuple([f"{space}." for space in OF_NETWORKS])
LISTED = {  # of modules without `__all__`
    "dt.random": "Generator bernoulli beta choice default_rng dirichlet exponential gamma "
    "get_state integers laplace manual_seed normal permutation poisson rand randint randn "
    "set_state shuffle truncated_normal uniform",
    "dt.memory": "Allocator BlockInfo CachingAllocator DataPtr MappedFile SegmentInfo Stats "
    "Storage empty_cache get_allocator get_numa_policy html_report reset_peak set_allocator "
    "set_limit set_numa_policy snapshot stats trace wrap_pointer",
    "dt.plugins": "devices open_device records",
}
# Parameters with one meaning everywhere: the docstring of `dovetail` documents them.
EVERYWHERE = {"x", "x1", "x2", "axis", "keepdims", "out", "shape", "dtype", "device", "spec"}
# Those with one meaning in a namespace: its docstring documents them.
WITHIN = {
    "dt.nn.functional": "input input1 input2 target weight bias dim training inplace reduction "
    "size_average reduce kernel_size stride padding dilation ceil_mode output_size return_indices "
    "groups",
    "dt.nn.init": "tensor gain generator",
}
# Exceptions from the rules, and the reasons.
EXCEPT = {
    "dt.autograd.set_gradient": "an example",  # is in docs/adding-an-op.md, whose code runs
}
TENSORS = re.compile(r"\b(Tensors?|Array|Operand|COO)\b")
RAISES = re.compile(r"^Raises: (.*?)(?:\n\n|\n(?=[A-Z]\w+:)|\Z)", re.DOTALL | re.MULTILINE)
PARAMETER = re.compile(r"^`(\w+)`(?:, `(\w+)`)*:", re.MULTILINE)


# --- public names --------------------------------------------------------------------------------


def public() -> Iterator[tuple[str, Any]]:
    for space, module in SPACES.items():
        for name in getattr(module, "__all__", None) or LISTED[space].split():
            yield f"{space}.{name}", getattr(module, name)


def members(of: type) -> Iterator[tuple[str, Any]]:
    """Return the public methods and properties that dovetail's own classes define."""
    for name in dir(of):
        home = next(c for c in of.__mro__ if name in vars(c))
        found = vars(home)[name]
        found = getattr(found, "__func__", found)  # of a static or class method
        if (
            not name.startswith("_")
            and home.__module__.startswith("dovetail")
            and (inspect.isroutine(found) or isinstance(found, property))
        ):
            yield name, found


FUNCTIONS = {name: value for name, value in public() if inspect.isroutine(value)}
METHODS = {f"Tensor.{n}": m for n, m in members(dt.Tensor) if m not in FUNCTIONS.values()}
WHOLE = FUNCTIONS | METHODS
CLASSES = {
    name: value
    for name, value in public()
    if inspect.isclass(value) and not issubclass(value, Exception)
}
TENSORS_OWN = dict(members(dt.Tensor))


def replaces(name: str) -> bool:
    """Return True if a member without a docstring overrides one that has one."""
    of, _, member = name.rpartition(".")
    places = [vars(c)[member] for c in CLASSES[of].__mro__ if member in vars(c)]
    given, *before = [p.__doc__ for p in places if inspect.isroutine(p) or isinstance(p, property)]
    return not given and any(before)


OTHERS = {
    f"{name}.{n}": m
    for name, c in CLASSES.items()
    for n, m in members(c)
    if TENSORS_OWN.get(n) is not m
}
FIRST = {id(m): name for name, m in reversed(OTHERS.items())}  # inherited members count once
OTHERS = {
    name: m
    for name, m in OTHERS.items()
    if FIRST[id(m)] == name and not (name.startswith(NETWORKS) and replaces(name))
}


def said(value: Any) -> str:
    return inspect.getdoc(value) or ""


def parameters(value: Any) -> dict[str, str]:
    """Return a function's parameters and their hints, without the tensor of host reads."""
    if not inspect.isroutine(value):
        return {}
    found = dict(inspect.signature(value).parameters)  # names with "_" are not for users
    if value in READ_METHODS.values():
        found.pop("x")
    own = {n: p for n, p in found.items() if n not in ("self", "cls") and not n.startswith("_")}
    return {n: str(p.annotation) for n, p in own.items()}


def self_evident(name: str, value: Any) -> set[str]:
    """Return parameters that need no line: those with one meaning everywhere, and `*tensors`."""
    found = inspect.signature(value).parameters.values()
    within = WITHIN.get(name.rpartition(".")[0], "").split()
    return EVERYWHERE | {*within} | {p.name for p in found if p.kind is p.VAR_POSITIONAL}


def in_place(name: str) -> bool:
    """Return True for in-place forms; their docstring is that of their function."""
    return name.startswith("Tensor.") and name.endswith("_")


# --- content of docstrings -----------------------------------------------------------------------


def first_line(text: str) -> list[str]:
    """Return what is wrong with the shape of a docstring."""
    first, *rest = text.splitlines() or [""]
    found = []
    if not first.endswith(".") or re.search(r"[.!?] [A-Z]", first):
        found.append("a first line that is one sentence")
    if rest and rest[0]:
        found.append("an empty line after the first")
    return found + [f"a line of {len(li)}" for li in text.splitlines() if len(li) > 96]


def errors_named(text: str) -> set[str]:
    """Return the names after `Raises:`."""
    listed = " ".join(RAISES.findall(text))
    return set(re.findall(r"\b[A-Z]\w+(?:Error|Overflow|Range)\b", listed))


def parameters_named(text: str) -> set[str]:
    """Return the names at the start of a line, as in "`axis`: which"."""
    return {n for m in PARAMETER.finditer(text) for n in re.findall(r"`(\w+)`", m.group())}


def wrong(name: str, value: Any) -> list[str]:
    """Return what a public docstring lacks."""
    text, given = said(value), parameters(value)
    found, wanted = first_line(text), []
    if any(TENSORS.search(hint) for hint in given.values()):
        wanted += ["Shapes:", "Dtypes:"]
    wanted += ["Dtypes:"] if "dtype" in given else []
    wanted += ["Raises:"] if given else []
    found += [label for label in dict.fromkeys(wanted) if label not in text]
    found += [] if ">>> " in text else ["an example"]
    if given and not in_place(name):
        found += [
            f"`{p}`" for p in given if p not in self_evident(name, value) and f"`{p}`" not in text
        ]
        found += [f"no parameter `{p}`" for p in parameters_named(text) - {*given}]
    known = {*vars(errors), *vars(builtins), *dt.checkpoint.__all__, *dt.parallel.__all__}
    found += [f"no error {n}" for n in errors_named(text) if n not in known]
    return [f for f in found if f != EXCEPT.get(name)]


@pytest.mark.parametrize("name", WHOLE)
def test_docstring_is_complete(name: str) -> None:
    assert wrong(name, WHOLE[name]) == []


def hints(value: Any) -> list[str]:
    """Return the hints of a function or a property, with the return type."""
    function = value.fget if isinstance(value, property) else value
    if not inspect.isroutine(function):
        return []
    signature = inspect.signature(function)
    return [str(p.annotation) for p in signature.parameters.values()] + [
        str(signature.return_annotation)
    ]


def vague(texts: list[str]) -> bool:
    return any(re.search(r"\bAny\b", text) for text in texts)


# Networks accept a user's own module, data set or optimizer, so these hints are Any.
HINTED = {n: v for n, v in (WHOLE | OTHERS).items() if not n.startswith(NETWORKS)}


def test_no_public_hint_is_any() -> None:
    assert vague(hints(said)) and not vague(hints(vague))
    assert [name for name, value in HINTED.items() if vague(hints(value))] == []
    known = {n: c for n, c in CLASSES.items() if not n.startswith(NETWORKS)}
    attributes = {n: list(getattr(c, "__annotations__", {}).values()) for n, c in known.items()}
    assert [name for name, texts in attributes.items() if vague([*map(str, texts)])] == []


@pytest.mark.parametrize("name", [*CLASSES, *OTHERS])
def test_first_line_is_a_sentence(name: str) -> None:
    assert first_line(said((CLASSES | OTHERS)[name])) == []


@pytest.mark.parametrize("name", CLASSES)
def test_class_has_an_example(name: str) -> None:
    assert ">>> " in said(CLASSES[name])


# Internals too: the file and the name of each docstring whose first line runs on.
CODE = [ROOT / "core" / "dovetail", ROOT / "backends"]
RUN_ON = {"calls.py", "launch.py"}  # still to be corrected
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef


def running_on(tree: ast.Module) -> list[str]:
    """Return the names with a docstring whose first line does not end with its sentence."""
    documented = [n for n in statements(tree) if isinstance(n, DOCUMENTED)]
    first = {n: (ast.get_docstring(n) or ".").splitlines()[0] for n in documented}
    return [getattr(n, "name", "the module") for n in first if not first[n].endswith((".", ":"))]


def test_first_lines_of_internals_are_sentences() -> None:
    assert running_on(ast.parse("def f():\n    '''What goes on and\n    on.'''")) == ["f"]
    left_out = {"build", "template", "testing"}  # the kit describes its cases, at any length
    paths = [p for folder in CODE for p in sorted(folder.rglob("*.py"))]
    found = {p: running_on(parse_file(p)) for p in paths if not left_out & {*p.parts}}
    assert [f"{p}: {n}" for p, ns in found.items() for n in ns if p.name not in RUN_ON] == []


def test_missing_parts_of_a_docstring_are_detected() -> None:
    def f(x: dt.Tensor, k: int, *, dtype: Any = None) -> None:
        """What comes back. And more
        of it.

        `n`: not there.
        Raises: ShapeErorr, NoSuchError.
        """

    assert wrong("f", f) == [
        "a first line that is one sentence", "an empty line after the first",
        "Shapes:", "Dtypes:", "an example", "`k`", "no parameter `n`", "no error NoSuchError",
    ]  # fmt: skip


def test_namespace_documents_common_parameters() -> None:
    assert [p for p in sorted(EVERYWHERE) if f"`{p}`" not in said(dt)] == []


@pytest.mark.parametrize("space", WITHIN)
def test_space_documents_its_parameters(space: str) -> None:
    assert [p for p in WITHIN[space].split() if f"`{p}`" not in said(SPACES[space])] == []


def test_exceptions_from_the_rules_are_required() -> None:
    lacking = {n for n in EXCEPT if ">>> " not in said(WHOLE[n])}
    assert lacking == {*EXCEPT}


# --- examples ------------------------------------------------------------------------------------

EXAMPLES = {
    id(value): (name, said(value))
    for name, value in (WHOLE | CLASSES | OTHERS).items()
    if ">>> " in said(value)
}


@pytest.mark.parametrize("name, text", EXAMPLES.values(), ids=lambda part: part.split("\n")[0])
def test_examples_print_their_output(name: str, text: str) -> None:
    if name.startswith("dt.onnx."):
        pytest.importorskip("onnx")
    assert find_failures(text, name) == ""


def test_wrong_example_is_detected() -> None:
    assert "Expected" in find_failures(">>> 1 + 1\n3\n", "f")


# --- sources, units, accuracy --------------------------------------------------------------------

SUMS = "sum prod mean var std logsumexp softmax log_softmax"
PRODUCTS = "vecdot tensordot einsum"
DRAWN = "uniform normal integers permutation default_rng"
NAMED = {
    **{f"dt.{n}": "canonical" for n in SUMS.split()},
    **{f"dt.{n}": "Order: " for n in PRODUCTS.split()},
    "dt.matmul": "`dt.vendor_products(False)`",
    **{f"dt.random.{n}": "Philox4x32-10" for n in DRAWN.split()},
    **{f"dt.{n}": "stable" for n in ("sort", "argsort", "topk")},
    **{
        f"dt.memory.{n}": "Units: bytes" for n in ("stats", "snapshot", "set_limit", "wrap_pointer")
    },
    **{f"Tensor.{n}": "Units: bytes" for n in ("itemsize", "nbytes", "data_ptr")},
    **{f"Tensor.{n}": "Units: elements" for n in ("stride", "storage_offset")},
    "dt.as_strided": "Units: elements",
    "dt.explain": "Units: bytes",
    "dt.profile": "in seconds",
    "dt.Event.elapsed_ms": "Units: milliseconds",
    "dt.from_dlpack": "Source: DLPack",
}


@pytest.mark.parametrize("name", NAMED)
def test_orders_sources_and_units_are_documented(name: str) -> None:
    assert NAMED[name] in said((WHOLE | OTHERS)[name])


ROW = re.compile(r"^\| (\w+) \| float(32|64) \|.*?\| ([\d.]+) \| [^|]+ \|$", re.MULTILINE)
MEASURED = {
    (name, bits): float(ulp)
    for name, bits, ulp in ROW.findall(
        (Path(__file__).parent.parent / "docs" / "accuracy.md").read_text()
    )
}


@pytest.mark.parametrize("name", sorted({name for name, _ in MEASURED}))
def test_documented_error_bounds_equal_measurements(name: str) -> None:
    """Rounded up to two digits; an error of half an ulp is written as such."""
    bound = re.search(
        r"within ([\d.]+) ulp in float32, ([\d.]+) in float64", said(getattr(dt, name))
    )
    assert bound is not None
    for bits, stated in zip(("32", "64"), map(float, bound.groups()), strict=True):
        assert MEASURED[name, bits] <= stated < MEASURED[name, bits] + 0.0101
