"""What editors, `help` and tracebacks show of the public names."""

from __future__ import annotations

import inspect
import pickle
import pydoc
import re
import subprocess
import sys
import traceback
import types
from collections.abc import Callable
from functools import reduce
from typing import Any

import dovetail as dt
import pytest
from dovetail import tracebacks

PACKAGES = (
    "amp", "autograd", "checkpoint", "comm", "data", "distributions", "distributions.constraints",
    "distributions.kl", "distributions.transforms", "extension", "fft", "func", "linalg", "memory",
    "metrics", "nn", "nn.functional", "nn.init", "nn.utils", "onnx", "optim", "optim.lr_scheduler",
    "parallel", "plugins", "random", "sparse", "sparse.linalg", "tensorboard",
)  # fmt: skip
IN_C = (dt.Storage, dt.memory.DataPtr)  # classes whose `__module__` cannot be set


def package(name: str) -> Any:
    return reduce(getattr, name.split(".") if name else [], dt)


def functions_and_classes() -> list[tuple[str, str, Any]]:
    """Return package, name and value of each public function and class."""
    names = [(p, n) for p in ("", *PACKAGES) for n in (dir(package(p)) if p else dt.__all__)]
    values = [(p, n, getattr(package(p), n)) for p, n in names]
    return [
        (p, n, v) for p, n, v in values
        if (isinstance(v, type) or hasattr(v, "__code__")) and v not in IN_C
    ]  # fmt: skip


PUBLIC = functions_and_classes()


def test_module_of_every_public_name_is_the_public_package() -> None:
    modules = {"dovetail", "dovetail.errors", *(f"dovetail.{p}" for p in PACKAGES)}
    others = {f"{p}.{n}" for p, n, v in PUBLIC if v.__module__ not in modules}
    assert others == {".__array_namespace_info__"}  # it has another name where it is defined
    assert dt.matmul.__module__ == dt.Tensor.__module__ == "dovetail"
    assert dt.nn.Linear.__module__ == "dovetail.nn"
    assert dt.random.randn.__module__ == "dovetail.random"


def test_public_names_are_pickled_by_their_public_module() -> None:
    wrong = [f"{p}.{n}" for p, n, v in PUBLIC if pickle.loads(pickle.dumps(v)) is not v]
    assert wrong == []


@pytest.mark.parametrize("first", ["dovetail.linalg", "dovetail.autograd", "dovetail.random"])
def test_module_of_a_name_does_not_depend_on_the_order_of_imports(first: str) -> None:
    program = f"import {first}, dovetail as dt; print(dt.matmul.__module__, dt.grad.__module__)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "dovetail dovetail\n", done.stderr


def test_signatures_show_no_parameters_for_other_libraries() -> None:
    shown = {f"{p}.{n}": parameters(v) for p, n, v in PUBLIC}
    assert [n for n, names in shown.items() if {"theirs"} & {*names}] == []
    # which take further objects to store, by any name
    with_more = {n for n, names in shown.items() if "more" in names}
    assert with_more == {"checkpoint.load", "checkpoint.save"}


def parameters(value: Any) -> list[str]:
    try:
        return [*inspect.signature(value).parameters]
    except ValueError:  # a class that inherits the constructor of one in C
        return []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("sum", "(x: Tensor, /, axis: Axis = None, *, dtype: DTypeLike = None, "
         "keepdims: bool = False, out: Tensor | None = None, initial: Fill | None = None, "
             "where: Mask = None) -> Tensor"),
        ("exp", "(x: Tensor, /, *, out: Tensor | None = None) -> Tensor"),
        ("nn.Dropout", "(p: float = 0.5, inplace: bool = False) -> None"),
        ("nn.functional.relu", "(input: Tensor, inplace: bool = False) -> Tensor"),
        ("linalg.inv", "(x: Tensor, /, *, out: Tensor | None = None) -> Tensor"),
    ],
)  # fmt: skip
def test_signature_shows_parameters_without_quotes(name: str, text: str) -> None:
    assert str(inspect.signature(package(name))) == text


def test_changed_public_signature_is_an_ordinary_one() -> None:
    signature = inspect.signature(dt.exp)
    changed = signature.replace(return_annotation=int)
    assert [*changed.parameters] == ["x", "out"]
    assert changed != signature == inspect.signature(dt.log)
    assert signature.bind(1).arguments == {"x": 1}


def test_hidden_parameters_are_still_accepted() -> None:
    x = dt.ones((2, 3))
    assert dt.sum(input=x, dim=1, keepdim=True).shape == (2, 1)
    assert dt.exp(input=x).shape == x.reshape(2, 3).shape == dt.zeros(2, 3).shape


def test_subclass_of_a_public_class_has_its_own_signature() -> None:
    class Net(dt.nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()

    assert [*inspect.signature(Net).parameters] == ["width"]


@pytest.mark.parametrize("name", PACKAGES)
def test_dir_of_a_package_lists_its_public_names(name: str) -> None:
    module = package(name)
    assert {*module.__all__} <= {*dir(module)}
    if name != "random":
        assert dir(module) == sorted(module.__all__)


def test_namespace_holds_no_imported_module_of_python() -> None:
    public = {n: v for n, v in vars(dt).items() if n.isidentifier() and n[0] != "_"}
    modules = {n: v.__name__ for n, v in public.items() if isinstance(v, types.ModuleType)}
    assert [n for n, name in modules.items() if not name.startswith("dovetail.")] == []


def test_random_is_importable_as_a_module() -> None:
    program = (
        "import dovetail.random as r; from dovetail.random import randn; import dovetail as dt;"
        "print(r is dt.random, randn is dt.random.randn)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "True True\n", done.stderr


def test_error_of_a_missing_random_function_names_the_public_module() -> None:
    with pytest.raises(AttributeError, match=r"^module 'dovetail\.random' has no attribute 'stat'"):
        _ = dt.random.stat  # type: ignore[attr-defined]


def test_tensor_is_callable_before_anything_else() -> None:
    program = "import dovetail as dt; print(dt.tensor([1.0, 2.0], requires_grad=True).shape)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "(2,)\n", done.stderr


def test_help_of_the_package_is_an_overview() -> None:
    text = pydoc.plaintext.document(dt)
    assert len(text.splitlines()) < 115
    assert "gradients and transforms: `grad`" in text
    names = {*re.findall(r"`(\w+)`", text.partition("Names follow")[0])}
    assert len(names) > 40
    assert [n for n in names if not hasattr(dt, n)] == []
    assert len(dir(dt)) > 400


def test_help_of_a_function_begins_with_its_public_module_and_signature() -> None:
    title, _, shape, *_ = pydoc.render_doc(dt.exp, renderer=pydoc.plaintext).splitlines()
    assert title == "Python Library Documentation: function exp in module dovetail"
    assert shape == "exp(x: Tensor, /, *, out: Tensor | None = None) -> Tensor"


def test_repr_of_objects_shows_what_they_hold() -> None:
    data = dt.data.TensorDataset(dt.ones((2, 3)))
    for value in (data, dt.data.DataLoader(data), dt.random.Generator(1), dt.profile()):
        assert " at 0x" not in repr(value)


JEDI = """\
import dovetail as dt
import dovetail.nn.functional as F
from dovetail import optim
"""


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("dt.nn.", "Linear"), ("F.", "relu"), ("optim.", "Adam"), ("dt.random.", "randn"),
        ("dt.", "matmul"), ("dt.linalg.", "inv"),
    ],
)  # fmt: skip
def test_jedi_completes(line: str, wanted: str) -> None:
    jedi = pytest.importorskip("jedi", reason="jedi is not installed")
    names = {c.name for c in jedi.Script(JEDI + line).complete()}
    assert wanted in names


# --- tracebacks


def frames(call: Callable[[], object]) -> list[str]:
    """Return the functions in the traceback of the error of a call, without this one."""
    with pytest.raises(dt.DovetailError) as info:
        call()
    found = traceback.extract_tb(info.value.__traceback__)
    return [f.name for f in found if f.name != "frames"]


X, Y = dt.ones((2, 3)), dt.ones((4, 5))
CALLS: dict[str, Callable[[], object]] = {
    "wrapped function": lambda: dt.median(X, axis=9),
    "unknown parameter": lambda: dt.median(X, axs=9),  # type: ignore[call-arg]
    "function of a row": lambda: dt.add(X, Y),
    "function with out": lambda: dt.linalg.inv(X),
    "layer": lambda: dt.nn.Linear(3, 4)(Y),
    "constructor": lambda: dt.nn.Linear(3, "a"),  # type: ignore[arg-type]
    "function of networks": lambda: dt.nn.functional.conv2d(X, Y),
}


@pytest.fixture
def hides_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracebacks, "keeps_frames", False)


@pytest.mark.usefixtures("hides_frames")
@pytest.mark.parametrize("name", CALLS)
def test_traceback_ends_in_the_code_of_the_user(name: str) -> None:
    assert frames(CALLS[name]) == ["<lambda>"]


@pytest.mark.usefixtures("hides_frames")
@pytest.mark.parametrize("transform", [dt.vmap, dt.jit])
def test_traceback_keeps_the_frames_of_a_transformed_function(transform: Any) -> None:
    def rows(x: dt.Tensor) -> dt.Tensor:
        return dt.add(x, Y)

    kept = [n for n in frames(lambda: transform(rows)(X)) if "RecentExecutables" not in n]
    assert kept == ["<lambda>", "rows"]


def test_traceback_keeps_all_frames_in_development_mode() -> None:
    assert len(frames(CALLS["wrapped function"])) > 3


@pytest.mark.usefixtures("hides_frames")
@pytest.mark.parametrize(("kind", "kept"), [("InternalError", ["fail"]), ("ShapeError", [])])
def test_internal_error_keeps_the_frames_of_dovetail(kind: str, kept: list[str]) -> None:
    scope: dict[str, Any] = {"__name__": "dovetail.inner", "dt": dt}
    exec(f"def fail(): raise dt.{kind}('x')", scope)
    with pytest.raises(dt.DovetailError) as info:
        scope["fail"]()
    tracebacks.hide_internal_frames(info.value)
    found = traceback.extract_tb(info.value.__traceback__)
    assert [f.name for f in found if f.name == "fail"] == kept
