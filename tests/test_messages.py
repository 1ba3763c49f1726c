"""Calls that newcomers from NumPy and PyTorch make: each works, or its error says what to write.

A row is `call ! text of the error`. The text is a part of the message.
"""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from functools import reduce
from pathlib import Path
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.declarations import IN_PLACE_METHODS, METHODS
from dovetail.functions.methods import LAZY_MODULES

WRONG_VALUES = """
x.max(dim=1) ! max: dovetail returns values only; use dt.max(x, axis=1), and dt.argmax(x, axis=1) for indices
dt.sort(v).values ! dovetail returns values only; drop `.values`, and for indices use dt.argmax, dt.argmin or dt.argsort
dt.where(v > 1, v) ! where: expected where(condition, x1, x2), or where(condition) for indices
nn.MultiheadAttention(10, 3) ! MultiheadAttention: embed_dim must be divisible by num_heads, got 10 and 3
F.cross_entropy(x, dt.asarray([0, 7])).item() ! cross_entropy: a class index must be from 0 to 2 for 3 classes, got 7
F.nll_loss(x, dt.asarray([0, -1])).item() ! nll_loss: a class index must be from 0 to 2 for 3 classes, got -1
float(x) ! float: expected a tensor with one element, got shape (2, 3); use x.tolist()
dt.histogram(v, bins=-1) ! histogram: bins must be positive, got -1
dt.quantile(v, 1.5) ! quantile: q must be between 0 and 1, got 1.5
dt.topk(v, 9) ! topk: k must be at most 3 (size of axis -1), got 9
dt.random.choice(5, 9, replace=False) ! choice: cannot draw 9 samples from 5 values without replacement; pass replace=True
dt.quantization ! dovetail has no quantization module; to halve the size of a tensor use x.astype(dt.float16)
dt.random.randint(5, 2) ! randint: low must be below high, got low=5, high=2
F.embedding(x, dt.ones((3, 3))) ! embedding: input must hold integers, got float32; use input.astype(dt.int64)
nn.BatchNorm1d(3)(v) ! BatchNorm1d: expected 2 or 3 dimensions, got shape (3,)
dt.einsum("ij,j", x) ! einsum: 'ij,j' names 2 operands, got 1
dt.reproducible(True) ! use dt.vendor_products(False), a context
dt.zeros(2, device="mps") ! dovetail has no backend for "mps"; installed:
dt.zeros(2, device="mps") ! see `dovetail doctor`
dt.add(x, torch.zeros(2, 3)) ! got torch.Tensor; use dt.asarray(x.detach())
dt.asarray(torch.zeros(2, requires_grad=True)) ! asarray: the torch.Tensor requires grad; pass x.detach()
dt.save(folder / "a.safetensors", {"a": {"b": v}, "a.b": v}) ! save: two tensors have the name 'a.b'; rename one of them
dt.jit(dt.bincount, fullgraph=True)(i) ! bincount: in dt.jit the length must be known; use dt.bincount(x, length=n)
dt.set_default_device("tpu") ! set_default_device: dovetail has no backend for "tpu"; installed:
dt.set_default_device("reference:7") ! set_default_device: no device "reference:7" exists; available: reference:0
dt.linalg.cholesky_solve(dt.linalg.cholesky(q), dt.ones((2, 1))) ! cholesky_solve: the factor must be square, got shape (2, 1); it comes second
dt.linalg.cholesky_solve(dt.linalg.cholesky(q), q) ! cholesky_solve: b is triangular and the factor is not; write cholesky_solve(b, factor)
"""  # noqa: E501 - a row is a line
WRONG_ARGUMENTS = """
x.copy("F") ! copy: has no parameter order; the order is always row-major; for columns pass x.mT or x.T
dt.concat(x, x, x) ! concat: arrays must be a list or tuple of tensors, got a Tensor
dt.concat([x], 0, 1, 2, 3) ! concat: expected at most 2 positional arguments (arrays, axis), got 5
dt.stack(x, x) ! stack: arrays must be a list or tuple of tensors, got a Tensor
dt.add(x) ! add: missing argument x2; the parameters are x1, x2, out=
x.add_() ! add_: missing argument x2; the parameters are x1, x2
x.add_(x, x) ! add_: expected at most 2 positional arguments (x1, x2), got 3
x.abs_(1) ! abs_: expected at most 1 positional argument (x), got 2
x.squeeze(0, 1) ! squeeze: expected at most 2 positional arguments (x, axis), got 3
x.moveaxis(0, 1, 2) ! moveaxis: expected at most 3 positional arguments (x, source, destination), got 4
dt.asarray(1, dt.int8, 3) ! asarray: expected at most 2 positional arguments (obj, dtype), got 3
dt.matmul(x, x, x, x) ! matmul: expected at most 2 positional arguments (x1, x2), got 4
dt.numel() ! numel: missing argument x; the parameters are x
dt.is_tensor(1, 2) ! is_tensor: expected at most 1 positional argument (obj), got 2
F.relu() ! relu: missing argument input; the parameters are input=, inplace=
F.relu(x, True, 3) ! relu: expected at most 2 positional arguments (input, inplace), got 3
F.softmax(x, nonsense=1) ! softmax: has no parameter nonsense; the parameters are input=, dim=
nn.init.normal_(x, 0, 1, None, 2, 3) ! normal_: expected at most 4 positional arguments (tensor, mean, std, generator), got 6
nn.Linear(3, 2).zero_grad(True, 1) ! Linear.zero_grad: expected at most 1 positional argument (set_to_none), got 2
x.unfold(0, 9, 1) ! unfold: size must be between 1 and 2, got 9
x.select(9, 0) ! select: axis 9 is out of range
dt.tree.map(3, [1]) ! map: f must be a function, got 3
dt.tree.map(abs, (1, 2), (1,)) ! tree.map: the trees must have one structure
dt.tree.unflatten(dt.tree.structure((1, 2)), [1]) ! tree.unflatten: Too few leaves
dt.pad(x, 1, constant_values=(1, 2, 3)) ! pad: constant_values must be a number, a pair, or a pair for each of 2 axes
"""  # noqa: E501


def rows(table: str) -> list[str]:
    return table.strip().splitlines()


@pytest.mark.parametrize("row", rows(WRONG_VALUES) + rows(WRONG_ARGUMENTS))
def test_wrong_call_says_what_to_write(row: str, tmp_path: Path) -> None:
    call, _, text = row.partition(" ! ")
    names: dict[str, Any] = {"dt": dt, "nn": dt.nn, "F": dt.nn.functional, "folder": tmp_path}
    if "torch." in call:
        names["torch"] = pytest.importorskip("torch", reason="torch is not installed")
    with dt.device("reference"):
        names |= {
            "x": dt.asarray([[1.0, 5.0, 2.0], [7.0, 3.0, 4.0]]), "v": dt.asarray([3.0, 1.0, 2.0]),
            "q": dt.asarray([[2.0, 1.0], [1.0, 3.0]]), "i": dt.asarray([0, 1, 1]),
        }  # fmt: skip
        with pytest.raises((dt.DovetailError, AttributeError)) as error:
            eval(call, names)
    assert text in str(error.value)


def test_load_of_an_unknown_dtype_names_the_tensor_and_the_dtype(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")
    from safetensors.torch import save_file

    file = tmp_path / "w.safetensors"
    save_file({"w": torch.zeros(2).to(torch.float8_e4m3fn)}, file)
    with pytest.raises(dt.DTypeError, match=r"load: 'w' of .* has dtype F8_E4M3, which dovetail"):
        dt.load(file)


# `foreign call | dovetail's own call`, with equal values
TRANSLATED = """
dt.index_add(x, axis=0, index=i, source=x) | dt.index_add(x, 0, i, x)
dt.cat([x, x], axis=1) | dt.concat([x, x], axis=1)
dt.concat([x, x], dim=1) | dt.concat([x, x], axis=1)
dt.sum(input=x, dim=1, keepdim=True) | dt.sum(x, axis=1, keepdims=True)
dt.amax(x, axis=1, keepdims=True) | dt.amax(x, 1, True)
dt.softmax(input=x, dim=1) | dt.softmax(x, axis=1)
F.softmax(x=x, axis=1) | F.softmax(x, dim=1)
F.log_softmax(x, axis=0) | F.log_softmax(x, dim=0)
F.normalize(x, axis=0) | F.normalize(x, dim=0)
F.glu(x[:, :2], axis=1) | F.glu(x[:, :2], dim=1)
F.cosine_similarity(x, y, axis=0) | F.cosine_similarity(x, y, dim=0)
F.relu(x=x) | F.relu(x)
x.copy().add_(y, alpha=2) | x + 2 * y
x.copy().sub_(y, alpha=0.5) | x - 0.5 * y
dt.add(x, y, alpha=-1) | x - y
x.sub(other=y, alpha=3) | x - 3 * y
x.copy().mul_(other=y) | x * y
x.copy().arctan_() | dt.atan(x)
x.copy().eq_(y) | dt.equal(x, y).astype(dt.float32)
x.type(dt.int32) | x.astype(dt.int32)
x.copy("C") | x.copy()
x.astype(dt.int32, "K") | x.astype(dt.int32)
dt.special.gammaln(y) | dt.lgamma(y)
dt.special.psi(y) | dt.digamma(y)
"""


@pytest.mark.parametrize("row", rows(TRANSLATED))
def test_foreign_call_equals_its_own_form(row: str) -> None:
    theirs, _, ours = row.partition(" | ")
    with dt.device("reference"):
        x = dt.asarray([[1.0, 5.0, 2.0], [7.0, 3.0, 4.0]])
        names = {"dt": dt, "F": dt.nn.functional, "x": x, "y": x + 1, "i": dt.asarray([0, 1])}
        found, expected = eval(theirs, names), eval(ours, names)
    np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))
    assert found.dtype is expected.dtype


@pytest.mark.parametrize("name", ["isnan_", "angle_", "signbit_", "imag_"])
def test_in_place_forms_that_no_library_has_are_gone(name: str) -> None:
    assert not hasattr(dt.ones(1, device="reference"), name)
    assert callable(getattr(dt, name[:-1]))


# --- calls that do not bind

# Python's own errors: contexts, settings, and functions that are called once for a program
INFRASTRUCTURE = """
    custom_op constant current_stream default_device default_stream device devices draw_graph
    get_autocast_dtype is_autocast_enabled
    elementwise evaluate explain grad grid is_grad_enabled is_inference_mode_enabled jit kernel
    load_function get_num_threads profile raw_kernel save_function set_num_threads show stream
    synchronize vmap get_default_dtype set_default_dtype get_printoptions set_printoptions
    get_state set_state manual_seed __array_namespace_info__ result_type broadcast_shapes
    contiguous matrix_transpose
"""  # fmt: skip


@pytest.mark.parametrize("package", ["", "linalg", "fft", "random", "nn.functional", "special"])
def test_call_that_does_not_bind_raises_an_error_with_the_name(package: str) -> None:
    module = reduce(getattr, package.split("."), dt) if package else dt
    x, raw, tried = dt.ones((2, 3), device="reference"), [], 0
    names = {*module.__all__, *getattr(module, "LAZY_FUNCTIONS", ())}
    for name in sorted(names - {*INFRASTRUCTURE.split()}):
        function = getattr(module, name)
        if isinstance(function, type) or not callable(function) or isinstance(function, dt.DType):
            continue
        tried += 1
        for arguments, options in (((x,) * 30, {"nonsense": 1}), ((), {"nonsense": 1})):
            try:
                function(*arguments, **options)
            except dt.DovetailError:
                continue
            except TypeError as error:
                raw.append(f"{name}: {error}")
    assert raw == []
    assert tried > 5


def test_no_error_of_a_method_shows_an_internal_name() -> None:
    x, raised = dt.ones((2, 2), device="reference"), 0
    arguments: tuple[tuple[object, ...], ...] = ((), (object(),), ("q",), (x, 0), (99,))
    for name in sorted(METHODS.keys() | IN_PLACE_METHODS.keys() | LAZY_MODULES.keys()):
        if name.startswith("_"):
            continue
        for args, options in itertools.product(arguments, ({}, {"nonsense": 1})):
            try:
                getattr(x.copy(), name)(*args, **options)
            except (dt.DovetailError, TypeError) as error:
                raised += 1
                assert not re.search(r"(?<![\w.'])_[a-z]\w*: |_method\b|\.functions\.", str(error))
    assert raised > 1000


def test_error_with_a_hint_has_no_second_suggestion() -> None:
    """Python appends "Did you mean" when it prints an error, where dovetail gave no hint."""
    for code, end in (
        ("dt.ones(1).gradient", "use dt.grad(x, inputs)"),
        ("dt.random.key", "use dt.random.default_rng(seed)"),
        ("dt.nn.RMSnorm", "use dt.nn.RMSNorm"),
        ("dt.ones(1).shpe", "has no attribute 'shpe'. Did you mean: 'shape'?"),
    ):
        program = f"import dovetail as dt; dt.set_default_device('reference'); {code}"
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        assert done.stderr.rstrip().endswith(end), code
