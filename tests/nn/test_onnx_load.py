"""`dt.onnx.load`: inputs and outputs of models, and hostile models."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from threading import Barrier
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.onnx.structure import ModelReader

onnx = pytest.importorskip("onnx")
TensorProto, helper = onnx.TensorProto, onnx.helper

F = TensorProto.FLOAT
PAGE = Path(__file__).parent.parent.parent / "docs" / "onnx.md"


def info(name: str, shape: Any = None, element: int = F) -> Any:
    return helper.make_tensor_value_info(name, element, shape)


def model(
    nodes: list[Any], inputs: Any = None, outputs: Any = None, constants: Any = (),
    opset: int = 20, functions: Any = (),
) -> Any:  # fmt: skip
    graph = helper.make_graph(
        nodes, "g", inputs or [info("x", [None])], outputs or [info("y")], list(constants)
    )
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("mine", 1)]
    return helper.make_model(graph, opset_imports=imports, functions=list(functions))


def node(op: str, inputs: str, outputs: str = "y", **attributes: Any) -> Any:
    return helper.make_node(op, inputs.split(), outputs.split(), name=f"the_{op}", **attributes)


def raw(name: str, element: int, dims: list[int], data: bytes) -> Any:
    made = TensorProto(name=name, data_type=element, dims=dims)
    made.raw_data = data
    return made


def ints(name: str, values: Any) -> Any:
    return onnx.numpy_helper.from_array(np.asarray(values, np.int64), name)


SMALL = model([node("Add", "x c")], constants=[raw("c", F, [1], np.float32(2).tobytes())])


# --- use ------------------------------------------------------------------------------------------


def test_model_accepts_positional_and_named_inputs(device: dt.Device) -> None:
    net = dt.onnx.load(SMALL.SerializeToString())
    x = dt.asarray([1.0, 2.0], dtype=dt.float32)
    assert (
        net(x).tolist() == net(x=x).tolist() == net.run({"x": [1.0, 2.0]})["y"].tolist() == [3, 4]
    )
    assert net(x).device is device
    assert [(v.name, v.dtype, v.shape) for v in net.inputs] == [("x", dt.float32, (None,))]
    assert net.outputs[0].name == "y" and net.metadata["opsets"] == {"": 20, "mine": 1}
    assert "gives y" in repr(net)


def test_calls_are_captured_if_shapes_allow() -> None:
    net = dt.onnx.load(SMALL, "reference")
    for _ in range(3):
        net(dt.ones(2, device="reference"))
    assert net._jit_run.captures == 1
    picks = dt.onnx.load(
        model([node("NonZero", "x")], outputs=[info("y", None, TensorProto.INT64)]), "reference"
    )
    for values in ([0.0, 1.0], [1.0, 1.0]):
        got = picks(dt.asarray(values, dtype=dt.float32, device="reference"))
        assert got.tolist() == np.stack(np.nonzero(values)).tolist()


def test_shapes_are_computed_during_a_capture() -> None:
    nodes = [
        node("Shape", "x", "s"), node("Gather", "s zero", "n"), node("Mul", "n two", "m"),
        node("Concat", "m rest", "shape", axis=0), node("Reshape", "x shape"),
    ]  # fmt: skip
    made = model(nodes, [info("x", ["n", 4])], constants=[
        ints("zero", [0]), ints("two", [2]), ints("rest", [2]),
    ])  # fmt: skip
    net = dt.onnx.load(made, "reference")
    for n in (3, 5, 3):
        assert net(dt.ones((n, 4), device="reference")).shape == (2 * n, 2)
    assert net._jit_run.captures == 2


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ((), dt.ArgumentError, "needs x"),
        ((np.ones(2, np.float32),) * 2, dt.ArgumentError, "takes at most 1 inputs, got 2"),
        ((np.ones(2),), dt.DTypeError, "must be float32"),
        ((np.ones((2, 2), np.float32),), dt.ShapeError, "'x' must have shape"),
    ],
)
def test_mismatched_inputs_are_named(given: Any, error: Any, said: str) -> None:
    with pytest.raises(error, match=re.escape(said)):
        dt.onnx.load(SMALL, "reference")(*given)


def test_unknown_input_names_raise() -> None:
    with pytest.raises(dt.ArgumentError, match="no input 'z'"):
        dt.onnx.load(SMALL, "reference").run({"x": [1.0], "z": [1.0]})
    with pytest.raises(dt.ArgumentError, match="twice"):
        dt.onnx.load(SMALL, "reference")([1.0], x=[1.0])


def test_dimensions_of_one_name_must_be_equal() -> None:
    two = [info("x", ["n"]), info("z", ["n"])]
    net = dt.onnx.load(model([node("Add", "x z")], two), "reference")
    with pytest.raises(dt.ShapeError, match="'z'"):
        net(np.ones(2, np.float32), np.ones(1, np.float32))


def test_external_data_is_loaded(tmp_path: Path) -> None:
    values = np.arange(4, dtype=np.float32)
    made = model([node("Add", "x c")], constants=[onnx.numpy_helper.from_array(values, "c")])
    onnx.save(made, tmp_path / "m.onnx", save_as_external_data=True, location="m.bin",
              size_threshold=0)  # fmt: skip
    assert dt.onnx.load(tmp_path / "m.onnx", "reference")(np.ones(4, np.float32)).tolist() == [
        1, 2, 3, 4,
    ]  # fmt: skip


def test_model_functions_with_attributes() -> None:
    inner = helper.make_node("LeakyRelu", ["a"], ["b"])
    attribute = onnx.AttributeProto(name="alpha", type=onnx.AttributeProto.FLOAT)
    attribute.ref_attr_name = "slope"
    inner.attribute.append(attribute)
    f = helper.make_function(
        "mine", "Leak", ["a"], ["b"], [inner], [helper.make_opsetid("", 20)], ["slope"]
    )
    made = model([node("Leak", "x", domain="mine", slope=0.5)], functions=[f])
    got = dt.onnx.load(made, "reference")(np.asarray([-2.0, 2.0], np.float32))
    assert got.tolist() == [-1.0, 2.0]


def test_function_called_twice_has_the_attributes_of_each_call() -> None:
    inner = helper.make_node("ReduceMax", ["a"], ["b"], keepdims=0)
    attribute = onnx.AttributeProto(name="axes", type=onnx.AttributeProto.INTS)
    attribute.ref_attr_name = "over"
    inner.attribute.append(attribute)
    f = helper.make_function(
        "mine", "Over", ["a"], ["b"], [inner], [helper.make_opsetid("", 17)], ["over"]
    )
    nodes = [
        node("Over", "c", "p", domain="mine", over=[0]),
        node("Over", "c", "q", domain="mine", over=[1]),
        node("Concat", "p q x", axis=0),
    ]
    c = onnx.numpy_helper.from_array(np.arange(6, dtype=np.float32).reshape(2, 3), "c")
    net = dt.onnx.load(model(nodes, constants=[c], functions=[f], opset=17), "reference")
    assert net(np.zeros(0, np.float32)).tolist() == [3, 4, 5, 2, 5]


def test_threads_share_a_model() -> None:
    net = dt.onnx.load(SMALL, "reference", limit=4000)
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda k: net(np.full(8, k, np.float32)).tolist(), range(40)))
    assert made == [[k + 2.0] * 8 for k in range(40)]
    assert net._interpreter.limit.used == 4


def rotation(functions: Any = ()) -> Any:
    """Return a model of an operator that onnx expands by the shapes of its inputs."""
    return model(
        [node("RotaryEmbedding", "x cos sin", num_heads=2)],
        [info("x"), info("cos"), info("sin")], opset=23, functions=functions,
    )  # fmt: skip


def rotate(net: dt.onnx.Model, *shape: int) -> Any:
    cos, sin = np.zeros((2, shape[0], shape[-2], 2), np.float32)
    return net(np.ones(shape, np.float32), cos + 1, sin)


@pytest.mark.parametrize(
    ("body", "error", "said"),
    [
        (node("Unheard", "x"), dt.UnsupportedError, "Unheard .1 x"),
        (node("Abs", "nothing"), dt.ArgumentError, "reads 'nothing'"),
    ],
)
def test_generated_function_that_fails_has_no_effect_on_others(
    body: Any, error: Any, said: str
) -> None:
    # Only for tensors of 4 dimensions the generated function transposes.
    transpose = helper.make_function(
        "", "Transpose", ["x"], ["y"], [body], [helper.make_opsetid("", 23)], attributes=["perm"]
    )
    net = dt.onnx.load(rotation([transpose]), "reference")
    used = net._interpreter.limit.used
    for n in (1, 2, 1):
        with pytest.raises(error, match=said):
            rotate(net, n, 2, 3, 4)
        assert net._interpreter.limit.used == used
    for n in (1, 2, 1):
        assert rotate(net, n, 3, 8).tolist() == np.ones((n, 3, 8)).tolist()


def test_generated_functions_of_many_shapes_have_no_common_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in ("structure", "interpreter"):
        monkeypatch.setattr(f"dovetail.onnx.{module}.NODES_MAX", 100, raising=False)
    net = dt.onnx.load(rotation(), "reference")
    for n in [*range(1, 12), *range(1, 12)]:
        assert rotate(net, n, 3, 8).tolist() == np.ones((n, 3, 8)).tolist()
        if n == 4:
            used = net._interpreter.limit.used
    assert net._interpreter.body_nodes <= 100 and net._interpreter.limit.used == used
    monkeypatch.setattr("dovetail.onnx.structure.NODES_MAX", 10)
    with pytest.raises(dt.ArgumentError, match="at most 10 nodes"):
        rotate(net, 30, 3, 8)


def test_threads_generate_functions_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    net = dt.onnx.load(rotation(), "reference")
    net._can_capture = False  # one thread captures at a time
    both, read = Barrier(2, timeout=20), ModelReader._read_nodes

    def wait_and_read(*args: Any) -> Any:
        both.wait()
        return read(*args)

    monkeypatch.setattr(ModelReader, "_read_nodes", wait_and_read)
    with ThreadPoolExecutor(2) as threads:
        made = [*threads.map(lambda n: rotate(net, n, 3, 8), (1, 2))]
    assert [len(x) for x in made] == [1, 2]


def test_folded_result_is_of_its_own_node() -> None:
    net = dt.onnx.load(SMALL, "reference")
    interpreter, two = net._interpreter, np.float32(2)
    found = set()
    for op in ("Neg", "Abs", "Neg", "Sqrt", "Exp") * 8:
        graph = dt.onnx.load(model([node(op, "c")], [info("x")], constants=[
            raw("c", F, [], two.tobytes())]), "reference")._graph  # fmt: skip
        (value,) = interpreter.run_graph(graph, [None], {}, {})
        found.add((op, round(float(value), 4)))
        del graph
    assert found == {("Neg", -2.0), ("Abs", 2.0), ("Sqrt", 1.4142), ("Exp", 7.3891)}


def test_if_operator_reads_its_condition() -> None:
    yes = helper.make_graph([node("Neg", "x", "a")], "yes", [], [info("a")])
    no = helper.make_graph([node("Abs", "x", "b")], "no", [], [info("b")])
    nodes = [node("ReduceSum", "x", "s", keepdims=0), node("Greater", "s zero", "c"),
             node("If", "c", then_branch=yes, else_branch=no)]  # fmt: skip
    made = model(nodes, constants=[raw("zero", F, [], np.float32(0).tobytes())])
    net = dt.onnx.load(made, "reference")
    assert net(np.asarray([1.0, 2.0], np.float32)).tolist() == [-1.0, -2.0]
    assert net(np.asarray([1.0, -2.0], np.float32)).tolist() == [1.0, 2.0]


def test_long_recurrence_is_one_loop() -> None:
    rng = np.random.default_rng(0)
    arrays = [
        rng.standard_normal(s).astype(np.float32) for s in ((40, 2, 3), (1, 16, 3), (1, 16, 4))
    ]
    made = model(
        [node("LSTM", "x w r", "y", hidden_size=4)],
        [info(n, list(a.shape)) for n, a in zip("xwr", arrays, strict=True)],
    )
    got = dt.onnx.load(made, "reference")(*arrays).numpy()
    ort = pytest.importorskip("onnxruntime")
    want = ort.InferenceSession(made.SerializeToString()).run(
        None, dict(zip("xwr", arrays, strict=True))
    )[0]
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_softmax_of_old_opsets_covers_all_later_axes() -> None:
    x = np.arange(8, dtype=np.float32).reshape(2, 2, 2)
    whole = np.exp(x) / np.exp(x).sum((1, 2), keepdims=True)
    last = np.exp(x) / np.exp(x).sum(2, keepdims=True)
    for opset, axis, want in ((12, 1, whole), (12, -1, last), (13, -1, last)):
        made = model([node("Softmax", "x", axis=axis)], [info("x")], opset=opset)
        net = dt.onnx.load(made, "reference")
        np.testing.assert_allclose(net(x).numpy(), want, rtol=1e-6)


def test_index_of_a_maximum_equal_to_the_padding_is_in_the_window() -> None:
    element = TensorProto.UINT8
    for dilation, padding, want in ((1, 1, [[[0, 1, 3]]]), (3, 2, [[[1, 0, 2]]])):
        made = model(
            [node("MaxPool", "x", "y i", kernel_shape=[2], strides=[2], pads=[padding] * 2,
                  dilations=[dilation])],
            [info("x", [1, 1, 5], element)],
            [info("y", element=element), info("i", element=TensorProto.INT64)],
        )  # fmt: skip
        net = dt.onnx.load(made, "reference")
        found = net.run({"x": np.zeros((1, 1, 5), np.uint8)})
        assert found["i"].tolist() == want


LARGE = (1 << 24) + 1  # float32 has no such integer


@pytest.mark.parametrize("element", ["INT32", "UINT32", "INT64"])
def test_resize_of_large_integers_rounds_once(element: str) -> None:
    from onnx.reference import ReferenceEvaluator

    number = getattr(TensorProto, element)
    x = np.array([[LARGE, LARGE + 2], [LARGE + 4, LARGE + 8]], element.lower())
    made = model(
        [helper.make_node("Resize", ["x", "", "", "n"], ["y"], mode="linear")],
        [info("x", [2, 2], number)], [info("y", element=number)], [ints("n", [4, 4])],
    )  # fmt: skip
    want = ReferenceEvaluator(made).run(None, {"x": x})[0]
    found = dt.onnx.load(made, "reference")(x)
    np.testing.assert_array_equal(found.numpy(), want)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_cropped_resize_of_large_integers_is_exact(mode: str) -> None:
    made = model(
        [helper.make_node(
            "Resize", ["x", "roi", "", "n"], ["y"], mode=mode, extrapolation_value=7.0,
            coordinate_transformation_mode="tf_crop_and_resize",
        )],
        [info("x", [2], TensorProto.INT32)], [info("y", element=TensorProto.INT32)],
        [ints("n", [4]), onnx.numpy_helper.from_array(np.array([0, 2.5], np.float32), "roi")],
    )  # fmt: skip
    x = np.array([LARGE, LARGE + 2], np.int32)
    found = dt.onnx.load(made, "reference")(x)
    assert found.dtype is dt.int32
    assert found.tolist() == [LARGE, LARGE + 2, 7, 7]


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_grid_sample_of_integers_reads_between_elements(mode: str) -> None:
    made = model(
        [node("GridSample", "x grid", mode=mode)],
        [info("x", [1, 1, 2, 2], TensorProto.INT32)], [info("y", element=TensorProto.INT32)],
        [onnx.numpy_helper.from_array(
            np.array([[[[-0.5, -0.5], [0.5, -0.5], [0.5, 0.25], [2, 2]]]], np.float32), "grid"
        )],
    )  # fmt: skip
    x = np.array([[[[LARGE, LARGE + 2], [LARGE + 4, LARGE + 10]]]], np.int32)
    found = dt.onnx.load(made, "reference")(x)
    assert found.dtype is dt.int32
    between = LARGE + 10 if mode == "nearest" else LARGE + 8
    assert found.tolist() == [[[[LARGE, LARGE + 2, between, 0]]]]


def test_range_longer_than_its_dtype_has_all_numbers() -> None:
    bounds = [
        onnx.numpy_helper.from_array(np.int16(v), name)
        for v, name in ((-30_000, "a"), (30_000, "b"), (1, "c"))
    ]
    element = TensorProto.INT16
    made = model([node("Range", "a b c")], [info("x")], [info("y", element=element)], bounds)
    found = dt.onnx.load(made, "reference")(np.zeros(1, np.float32))
    np.testing.assert_array_equal(found.numpy(), np.arange(-30_000, 30_000, dtype=np.int16))


@pytest.mark.exhaustive
def test_networks_equal_onnxruntime() -> None:
    """The networks that come with onnx;

    SqueezeNet's logits are about 1e10, so its softmax is rounding noise.
    """
    pytest.importorskip("dovetail_cpu_llvm")
    ort = pytest.importorskip("onnxruntime")
    ort.set_default_logger_severity(3)
    found = sorted((Path(onnx.__file__).parent / "backend/test/data/light").glob("*.onnx"))
    found = [path for path in found if "squeezenet" not in path.name]
    assert len(found) > 5
    for path in found:
        net = dt.onnx.load(path, "cpu")
        rng = np.random.default_rng(0)
        sizes = [n for n in net.inputs[0].shape or () if isinstance(n, int)]
        given = {net.inputs[0].name: rng.random(sizes).astype(np.float32)}
        want = ort.InferenceSession(path).run(None, given)
        for got, w in zip(net.run(given).values(), want, strict=True):
            np.testing.assert_allclose(got.numpy(), w, rtol=1e-4, atol=1e-4 * np.abs(w).max())


# --- unsupported models
# -----------------------------------------------------------------------------


def test_all_unknown_operators_are_listed() -> None:
    nodes = [node("Nothing", "x", "a"), node("Never", "a", "b", domain="far"),
             node("Nothing", "b", "c"), node("Abs", "c")]  # fmt: skip
    with pytest.raises(dt.UnsupportedError, match=re.escape("Nothing (2 x), far.Never (1 x)")):
        dt.onnx.load(model(nodes))


def test_missing_onnx_library_is_reported_in_one_line() -> None:
    code = (
        "import sys; sys.modules['onnx'] = None\n"
        "import dovetail as dt\n"
        "for f in (lambda: dt.onnx.load(b''), lambda: dt.onnx.export(abs, [])):\n"
        "    try: f()\n"
        "    except dt.UnavailableError as e: assert 'dovetail-tensor[onnx]' in str(e), e\n"
        "    else: raise SystemExit(1)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_import_of_dovetail_does_not_import_onnx() -> None:
    code = "import dovetail as dt, sys; dt.onnx.load; assert 'onnx' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


# --- hostile models
# ---------------------------------------------------------------------------------


def external(**said: str) -> Any:
    made = TensorProto(name="c", data_type=F, dims=[4], data_location=TensorProto.EXTERNAL)
    for k, v in said.items():
        made.external_data.add(key=k, value=v)
    return model([node("Add", "x c")], constants=[made])


def bomb(op: str, constants: list[Any], **attributes: Any) -> Any:
    names = " ".join(c.name for c in constants)
    return model([node(op, f"x {names}", **attributes)], constants=constants)


def doubled(times: int) -> Any:
    names = ["x", *[f"t{k}" for k in range(times)], "y"]
    nodes = [node("Concat", f"{a} {a}", b, axis=0) for a, b in pairwise(names)]
    return model(nodes)


def laughs(depth: int) -> Any:
    imports = [helper.make_opsetid("", 20), helper.make_opsetid("mine", 1)]
    functions = []
    for k in range(depth):
        inner = f"F{k + 1}"
        nodes = [helper.make_node("Neg", ["a"], ["b"])] if k == depth - 1 else [
            helper.make_node(inner, ["a"], ["t"], domain="mine"),
            helper.make_node(inner, ["t"], ["b"], domain="mine"),
        ]  # fmt: skip
        functions.append(helper.make_function("mine", f"F{k}", ["a"], ["b"], nodes, imports))
    return model([node("F0", "x", domain="mine")], functions=functions)


def circle() -> Any:
    imports = [helper.make_opsetid("", 20), helper.make_opsetid("mine", 1)]
    again = helper.make_node("F", ["a"], ["b"], domain="mine")
    f = helper.make_function("mine", "F", ["a"], ["b"], [again], imports)
    return model([node("F", "x", domain="mine")], functions=[f])


def floats(name: str, values: Any) -> Any:
    return onnx.numpy_helper.from_array(np.asarray(values, np.float32), name)


def truth(name: str) -> Any:
    return onnx.numpy_helper.from_array(np.asarray(True), name)


def mel(bins: int, size: int, rate: int, low: float, high: float) -> Any:
    numbers = [ints("bins", bins), ints("size", size), ints("rate", rate)]
    edges = [floats("low", low), floats("high", high)]
    return model([node("MelWeightMatrix", "bins size rate low high")], constants=numbers + edges)


def image_model(
    op: str, names: list[str], constants: Any, shape: Any = (1, 1, 4, 4), **attributes: Any
) -> Any:
    one = helper.make_node(op, names, ["y"], **attributes)
    return model([one], [info("x", list(shape))], constants=constants)


def endless_loop() -> Any:
    """Return a model whose loop stacks rows of 4 KiB without an end."""
    row = node("ConstantOfShape", "n", "row")
    yes = node("Identity", "before", "after")
    body = helper.make_graph(
        [row, yes], "body",
        [info("k", [], TensorProto.INT64), info("before", [], TensorProto.BOOL)],
        [info("after", [], TensorProto.BOOL), info("row")], [ints("n", [1 << 10])],
    )  # fmt: skip
    loop = helper.make_node("Loop", ["", "t"], ["y"], body=body)
    return model([loop], constants=[truth("t")])


HUGE = 1 << 60
HOSTILE: dict[str, tuple[Callable[[], Any], Any, str]] = {
    "claims 2**60 elements": (
        lambda: model([node("Add", "x c")], constants=[raw("c", F, [HUGE], b"1234")]),
        dt.ShapeError, "damaged"),
    "claims them without data": (
        lambda: model([node("Add", "x c")], constants=[
            TensorProto(name="c", data_type=F, dims=[HUGE])]),
        dt.ShapeError, "damaged"),
    "raw data of another length": (
        lambda: model([node("Add", "x c")], constants=[raw("c", F, [3], b"12345678")]),
        dt.ShapeError, "12 bytes for float32[3], got 8"),
    "a size must not be negative": (
        lambda: model([node("Add", "x c")], constants=[raw("c", F, [-1, -1], b"1234")]),
        dt.ShapeError, "must not be negative"),
    "an element type that is none": (
        lambda: model([node("Add", "x c")], constants=[raw("c", 77, [1], b"1")]),
        dt.DTypeError, "77"),
    "external values without a folder": (
        lambda: external(location="c.bin"), dt.ArgumentError, "folder"),
    "nodes in a circle": (
        lambda: model([node("Neg", "b", "a"), node("Neg", "a", "b"), node("Abs", "x")]),
        dt.ArgumentError, "topological order"),
    "a name given twice": (
        lambda: model([node("Neg", "x", "a"), node("Abs", "x", "a"), node("Abs", "a")]),
        dt.ArgumentError, "once"),
    "an output that nobody gives": (
        lambda: model([node("Neg", "x", "a")]), dt.ArgumentError, "no node of the graph"),
    "too few inputs": (lambda: model([node("Add", "x")]), dt.ArgumentError, "takes 2 to 2"),
    "an attribute of another type": (
        lambda: model([node("Softmax", "x", axis=[1, 2])]), dt.ArgumentError, "axis"),
    "no attribute that is needed": (
        lambda: model([node("Concat", "x x")]), dt.ArgumentError, "'axis'"),
    "a function that calls itself": (circle, dt.ArgumentError, "must not call itself"),
    "functions that double": (lambda: laughs(40), dt.ArgumentError, "nodes"),
    "an opset that is not there yet": (
        lambda: model([node("Neg", "x")], opset=999), dt.UnsupportedError, "opset 999"),
    "a Tile bomb": (lambda: bomb("Tile", [ints("n", [HUGE])]), dt.DovetailError, "Tile"),
    "an Expand bomb": (
        lambda: bomb("Expand", [ints("n", [1 << 30, 1 << 14, 1])]), dt.OutOfMemoryError, "limit"),
    "a Pad bomb": (lambda: bomb("Pad", [ints("n", [0, 1 << 50])]), dt.DovetailError, "Pad"),
    "a value that doubles": (lambda: doubled(60), dt.OutOfMemoryError, "limit="),
    "a ConstantOfShape bomb": (
        lambda: model([node("ConstantOfShape", "n", "c"), node("Add", "x c")],
                      constants=[ints("n", [1 << 45])]),
        dt.OutOfMemoryError, "ConstantOfShape"),
    "a Range bomb": (
        lambda: model([node("Range", "a n one", "r"), node("Cast", "r", to=F)], constants=[
            ints("a", 0), ints("n", 1 << 50), ints("one", 1)]),
        dt.OutOfMemoryError, "Range"),
    "a Resize bomb": (
        lambda: model([node("Resize", "x  s", mode="nearest")], [info("x", [1])], constants=[
            onnx.numpy_helper.from_array(np.float32([1e12]), "s")]),
        dt.DovetailError, "Resize"),
    "a OneHot bomb": (
        lambda: model([node("Cast", "x", "i", to=7), node("OneHot", "i n v")], constants=[
            ints("n", 1 << 50), ints("v", [0, 1])]),
        dt.DovetailError, "OneHot"),
    "a mel matrix of 512 GiB": (
        lambda: mel(1 << 16, 2_000_000, 8192, 0, 4096), dt.OutOfMemoryError, "MelWeightMatrix"),
    "a mel filter far above the rate": (
        lambda: mel(2, 16, 1, 0, 1e18), dt.ArgumentError, "at most sample_rate / 2"),
    "a mel filter below 0": (
        lambda: mel(2, 16, 8192, -500, 4096), dt.ArgumentError, "lower_edge_hertz between 0 and"),
    "a mel filter upside down": (
        lambda: mel(2, 16, 8192, 4000, 9), dt.ArgumentError, "lower_edge_hertz between 0 and"),
    "a mel filter that is not a number": (
        lambda: mel(2, 16, 8192, 0, np.nan), dt.ArgumentError, "lower_edge_hertz between 0 and"),
    "a sample rate of 0": (
        lambda: mel(2, 16, 0, 0, 4096), dt.ArgumentError, "sample_rate must be positive"),
    "a Resize to 2**33 linear positions": (
        lambda: image_model("Resize", ["x", "", "", "n"], [ints("n", [1, 1, 1 << 33, 1])],
                            mode="linear"),
        dt.OutOfMemoryError, "Resize"),
    "a Resize of 2**31 taps": (
        lambda: image_model("Resize", ["x", "", "f"], [floats("f", [1, 1, 1, 1e-9])],
                            mode="linear", antialias=1),
        dt.OutOfMemoryError, "Resize"),
    "a RoiAlign of 2**30 samples": (
        lambda: image_model("RoiAlign", ["x", "r", "b"],
                            [floats("r", [[0, 0, 1, 1]]), ints("b", [0])], sampling_ratio=1 << 30),
        dt.OutOfMemoryError, "RoiAlign"),
    "a RoiAlign of a box of 2**40 elements": (
        lambda: image_model("RoiAlign", ["x", "r", "b"],
                            [floats("r", [[0, 0, 1, 1]]), ints("b", [0])], spatial_scale=1e12),
        dt.OutOfMemoryError, "RoiAlign"),
    "a Col2Im without columns": (
        lambda: image_model("Col2Im", ["x", "i", "k"],
                            [ints("i", [1 << 16] * 2), ints("k", [1 << 10] * 2)],
                            shape=(0, 1 << 20, 4)),
        dt.OutOfMemoryError, "Col2Im"),
    "an AveragePool of padding": (
        lambda: image_model("AveragePool", ["x"], [], kernel_shape=[1 << 32, 1],
                            pads=[1 << 31, 0] * 2),
        dt.OutOfMemoryError, "AveragePool"),
    "a Conv of padding": (
        lambda: image_model("Conv", ["x", "w"], [floats("w", np.ones((1, 1, 1, 1)))],
                            pads=[1 << 40, 0] * 2, strides=[1 << 40, 1]),
        dt.OutOfMemoryError, "Conv"),
    "a Split into 2**40 parts": (
        lambda: image_model("Split", ["x"], [], num_outputs=1 << 40),
        dt.ArgumentError, "num_outputs must be 1"),
    "a DFT of 2**33 points": (
        lambda: image_model("DFT", ["x", "n"], [ints("n", 1 << 33)]), dt.OutOfMemoryError, "DFT"),
    "a Multinomial of 2**40 samples of 64 classes": (
        lambda: image_model("Multinomial", ["x"], [], shape=(1, 64), sample_size=1 << 40),
        dt.OutOfMemoryError, "Multinomial"),
    "a Dropout of all": (
        lambda: model([node("Dropout", "x r t")], constants=[floats("r", 1.0), truth("t")]),
        dt.ArgumentError, "ratio must be at least 0 and less than 1, got 1.0"),
    "a Dropout of less than nothing": (
        lambda: model([node("Dropout", "x r t")], constants=[floats("r", -0.5), truth("t")]),
        dt.ArgumentError, "ratio must be at least 0 and less than 1, got -0.5"),
    "axes that are none": (
        lambda: model([node("Softmax", "x", axis=7)]), dt.AxisError, "Softmax"),
    "a permutation that is none": (
        lambda: model([node("Transpose", "x", perm=[0, 0, 5])]), dt.DovetailError, "Transpose"),
    "a step of 0": (
        lambda: bomb("Slice", [ints("a", [0]), ints("b", [1]), ints("c", [0]), ints("d", [0])]),
        dt.ArgumentError, "step"),
    "a kernel of 0": (
        lambda: model([node("MaxPool", "x", kernel_shape=[0])], [info("x", [1, 1, 4])]),
        dt.ShapeError, "MaxPool"),
}  # fmt: skip


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_model_raises_a_named_error(what: str) -> None:
    make, error, said = HOSTILE[what]
    before = dt.memory.stats("reference").live_bytes
    with pytest.raises(error, match=re.escape(said)):
        net = dt.onnx.load(make(), "reference")
        shape = [n if isinstance(n, int) else 2 for n in net.inputs[0].shape or ()]
        net(np.ones(shape, np.float32))
    assert dt.memory.stats("reference").live_bytes - before < 1 << 24


@pytest.mark.parametrize("place", ["../secret.bin", "/etc/hostname", "link.bin", "", "."])
def test_external_data_outside_of_the_model_folder_is_not_read(tmp_path: Path, place: str) -> None:
    (tmp_path / "secret.bin").write_bytes(bytes(16))
    home = tmp_path / "home"
    home.mkdir()
    (home / "link.bin").symlink_to(tmp_path / "secret.bin")
    (home / "m.onnx").write_bytes(external(location=place).SerializeToString())
    with pytest.raises(dt.ArgumentError, match=r"folder|no such file"):
        dt.onnx.load(home / "m.onnx")


@pytest.mark.parametrize(
    "said", [{"offset": "8"}, {"length": "99"}, {"offset": "x"}, {"offset": "-4"}]
)
def test_external_data_beyond_the_end_of_a_file_is_not_read(
    tmp_path: Path, said: dict[str, str]
) -> None:
    (tmp_path / "c.bin").write_bytes(bytes(16))
    path = tmp_path / "m.onnx"
    path.write_bytes(external(location="c.bin", **said).SerializeToString())
    with pytest.raises(dt.DovetailError, match="'c'"):
        dt.onnx.load(path)


def test_mel_filter_above_half_the_rate_that_fits_is_built() -> None:
    made = mel(8, 16, 8192, 0, 4300)  # the last filter ends before the upper edge
    wanted = (
        pytest.importorskip("onnx.reference")
        .ReferenceEvaluator(made)
        .run(None, {"x": np.ones(1, np.float32)})[0]
    )
    actual = dt.onnx.load(made, "reference")(np.ones(1, np.float32))
    np.testing.assert_allclose(actual.numpy(), wanted, rtol=1e-6)


def test_lrn_of_more_channels_than_there_are_sums_all() -> None:
    x = np.arange(12, dtype=np.float32).reshape(1, 3, 4)
    net = dt.onnx.load(image_model("LRN", ["x"], [], (1, 3, 4), size=1 << 40), "reference")
    actual = net(x).numpy()
    np.testing.assert_allclose(actual, x, rtol=1e-5)  # alpha / size is 0


def test_endless_loop_that_stacks_rows_runs_out_of_its_limit() -> None:
    net = dt.onnx.load(endless_loop(), "reference", limit=1 << 16)
    with pytest.raises(dt.OutOfMemoryError, match="limit="):
        net(np.ones(1, np.float32))


def test_operator_without_memory_releases_what_it_reserved() -> None:
    resize = model(
        [helper.make_node("Resize", ["x", "", "", "n"], ["y"], mode="linear")],
        [info("x", [4]), info("n", [1], TensorProto.INT64)],
    )
    net = dt.onnx.load(resize, "reference", limit=4000)
    x, small, large = np.ones(4, np.float32), np.asarray([8]), np.asarray([1 << 20])
    for _ in range(3):
        with pytest.raises(dt.OutOfMemoryError, match="Resize"):
            net(x, large)
        assert net(x, small).tolist() == [1.0] * 8


def test_limit_argument_bounds_memory() -> None:
    with pytest.raises(dt.OutOfMemoryError, match="limit="):
        dt.onnx.load(SMALL, "reference", limit=3)
    net = dt.onnx.load(SMALL, "reference", limit=100)
    assert net(np.ones(10, np.float32)).shape == (10,)
    with pytest.raises(dt.OutOfMemoryError, match="limit="):
        net(np.ones(100, np.float32))
    assert net(np.ones(10, np.float32)).shape == (10,)  # the recorded state is discarded


def test_invalid_files_raise(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(b"not a model")
    for source in (tmp_path / "m.onnx", b"\xff" * 40, b""):
        with pytest.raises(dt.ArgumentError, match=r"onnx\.load"):
            dt.onnx.load(source)
    with pytest.raises(dt.ArgumentTypeError, match="int"):
        dt.onnx.load(3)


def test_damaged_models_load_or_raise_named_errors(thinned: Callable[..., Any]) -> None:
    """Bytes are changed, cut and inserted at random."""
    from onnx_cases import cases

    rng = np.random.default_rng(5)
    chosen = [
        c for c in cases() if re.search(r"_(conv_|gemm_|loop11|slice$|lstm_|resize_up)", c.name)
    ]
    for case in chosen[:12]:
        whole = case.model.SerializeToString()
        for _ in thinned(range(12), 4):
            raw_ = bytearray(whole)
            for _ in range(rng.integers(1, 4)):
                raw_[rng.integers(len(raw_))] = rng.integers(256)
            cut = (
                bytes(raw_[: rng.integers(1, len(raw_) + 1)]) if rng.random() < 0.2 else bytes(raw_)
            )
            try:
                net = dt.onnx.load(cut, "reference", limit=1 << 24)
                if "loop" not in case.name:  # a damaged count takes long
                    net.run(
                        dict(zip([v.name for v in net.inputs], case.data_sets[0][0], strict=False))
                    )
            except dt.InternalError:
                raise
            except dt.DovetailError:
                pass


def test_code_of_the_page_runs() -> None:
    made: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        exec(compile(block, "onnx.md", "exec"), made)
    assert made["y"].tolist() == [[4.0, 4.0]] * 5


def test_activations_of_recurrent_layers_follow_their_definitions_at_borders() -> None:
    from dovetail.onnx.operators.recurrent import _find_activation

    x = dt.asarray([100.0, 0.5, -100.0])
    np.testing.assert_allclose(
        _find_activation("Softplus", None, None)(x).numpy(),
        np.logaddexp(x.numpy().astype("f8"), 0),
        rtol=1e-6,
        atol=1e-40,  # denormal
    )
    assert _find_activation("ThresholdedRelu", 0.5, None)(x).tolist() == [100.0, 0.5, 0.0]


# --- opsets below 7


@pytest.mark.parametrize(
    ("op", "f"),
    [("Add", np.add), ("Sub", np.subtract), ("Mul", np.multiply), ("Div", np.divide),
     ("Pow", np.power)],
)  # fmt: skip
def test_opset_6_broadcasts_from_an_axis(op: str, f: Any) -> None:
    x = np.random.default_rng(1).random((2, 3, 4)).astype("f4")
    for options, shape in (
        ({}, (2, 3, 4)),
        ({"broadcast": 1}, (4,)),
        ({"broadcast": 1, "axis": 1}, (3,)),
        ({"broadcast": 1, "axis": 0}, (2, 3)),
        ({"broadcast": 1, "axis": -2}, (3,)),
    ):
        y = np.random.default_rng(2).random(shape).astype("f4") + 1
        inputs = [info("x", x.shape), info("b", shape)]
        net = dt.onnx.load(model([node(op, "x b", **options)], inputs, opset=6))
        axis = options.get("axis", 3 - y.ndim) % 3
        wide = y.reshape((*shape, *(1,) * (3 - axis - y.ndim)))
        np.testing.assert_allclose(net(dt.asarray(x), dt.asarray(y)).numpy(), f(x, wide), rtol=1e-6)


@pytest.mark.parametrize(
    ("op", "options", "constants"),
    [("BatchNormalization", {"is_test": 1}, 4), ("Dropout", {"is_test": 1}, 0),
     ("AveragePool", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}, 0), ("PRelu", {}, 1)],
)  # fmt: skip
def test_layers_of_opset_6_equal_those_of_today(
    op: str, options: dict[str, Any], constants: int
) -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(2, 3, 6, 6)).astype("f4")
    values = [rng.random(3).astype("f4") for _ in range(constants)]

    def run(opset: int, shape: tuple[int, ...], **options: Any) -> Any:
        tensors = [helper.make_tensor(f"c{i}", F, shape, v) for i, v in enumerate(values)]
        nodes = [node(op, " ".join(["x", *[t.name for t in tensors]]), **options)]
        net = dt.onnx.load(model(nodes, [info("x", x.shape)], constants=tensors, opset=opset))
        return net(dt.asarray(x)).numpy()

    now = {n: v for n, v in options.items() if n != "is_test"}
    wanted = run(20, (3, 1, 1) if op == "PRelu" else (3,), **now)
    assert np.array_equal(run(6, (3,), **options), wanted)


def test_batch_normalization_of_single_activations_is_refused() -> None:
    ones = [helper.make_tensor(n, F, (3,), np.ones(3)) for n in "abcd"]
    nodes = [node("BatchNormalization", "x a b c d", spatial=0)]
    net = dt.onnx.load(model(nodes, [info("x", (2, 3, 4))], constants=ones, opset=8))
    with pytest.raises(dt.ArgumentError, match="spatial must be 1, got 0"):
        net(dt.ones((2, 3, 4)))
