"""`dt.onnx.load`: read a model from a file, to run on any device."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

import dovetail as dt
from dovetail.extend import arguments

from ..nn.constructor_errors import Explained
from .interpreter import VALUE_ERRORS, Interpreter
from .library import Proto, import_onnx
from .limits import MemoryBudget
from .structure import ModelReader, OnnxGraph, ValueInfo

__all__ = ["Model", "load"]

FILE_BYTES_MAX = 1 << 31  # a limit of the format
Source: TypeAlias = "str | os.PathLike[str] | bytes | Proto"


class Model(Explained):
    """A loaded model: call it with its inputs, in order.

    - `graph`: the parsed graph, which `load` makes.
    - `run`: the interpreter of its operators, which `load` makes.
    - `metadata`: properties of the file, by name.

    `inputs` and `outputs` describe the values (`name`, `dtype`, `shape`); `device` is the device
    that runs the model. Calls are captured (`dt.jit`) unless shapes depend on values.
    See also: `load`, `export`.

    >>> import dovetail as dt
    >>> made = dt.onnx.export(lambda x: dt.tanh(x) * 2, dt.ones(3))
    >>> [value.name for value in dt.onnx.load(made).inputs]
    ['x']
    """

    inputs: tuple[ValueInfo, ...]
    outputs: tuple[ValueInfo, ...]
    metadata: dict[str, Any]
    holds_no_tensors = True  # that change: captures embed its constants

    def __init__(self, graph: OnnxGraph, run: Interpreter, metadata: dict[str, Any]) -> None:
        self.inputs, self.outputs, self.metadata = graph.inputs, graph.outputs, metadata
        self.device = run.device
        self._graph, self._interpreter = graph, run
        self._can_capture = all(v.kind == "tensor" for v in (*self.inputs, *self.outputs))
        self._jit_run = dt.jit(self._run_uncaptured, fullgraph=True)

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """Run the model and return its output: a tensor, or a tuple if it has several outputs.

        Raises: ArgumentError, ShapeError, DTypeError for inputs that do not fit.
        """
        if len(inputs) > len(self.inputs):
            raise dt.ArgumentError(
                f"onnx: the model takes at most {len(self.inputs)} inputs, got {len(inputs)}; its "
                f"inputs: {self._input_list()}"
            )
        by_position = dict(zip([v.name for v in self.inputs], inputs, strict=False))
        duplicates = sorted({*by_position} & {*named})
        if duplicates:
            raise dt.ArgumentError(
                f"onnx: the input {duplicates[0]!r} is given twice, by position and by name"
            )
        results = self._run_inputs({**by_position, **named})
        return results[0] if len(results) == 1 else tuple(results)

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Run the model on inputs by name, and return its outputs by name.

        - `inputs`: tensors or arrays by name.

        Raises: ArgumentError, ShapeError, DTypeError for inputs that do not fit.
        """
        return dict(zip([v.name for v in self.outputs], self._run_inputs(inputs), strict=True))

    def _input_list(self) -> str:
        """Return the names of the inputs as text, or "none"."""
        return ", ".join(v.name for v in self.inputs) or "none"

    def _run_inputs(self, inputs: Mapping[str, Any]) -> list[Any]:
        """Check inputs by name, run the model; return outputs in order.

        The first CaptureError turns capture off for all later calls.
        Raises: ArgumentError for unknown or missing inputs; other DovetailErrors of inputs and
        operators.
        """
        unknown = sorted({*inputs} - {v.name for v in self.inputs})
        missing = [v.name for v in self.inputs if v.name not in inputs and v.kind != "optional"]
        if unknown or missing:
            wrong = f"has no input {unknown[0]!r}" if unknown else f"needs {', '.join(missing)}"
            raise dt.ArgumentError(f"onnx: the model {wrong}; its inputs: {self._input_list()}")
        sizes: dict[str, int] = {}
        values = [self._check_input(v, inputs.get(v.name), sizes) for v in self.inputs]
        if self._can_capture:
            try:
                return list(self._jit_run(*values))
            except dt.CaptureError:  # a shape or a branch depends on values
                self._can_capture = False
        return list(self._run_uncaptured(*values))

    def _run_uncaptured(self, *inputs: Any) -> tuple[Any, ...]:
        """Run the graph on positional inputs, and return its outputs as tensors."""
        results = self._interpreter.run_graph(self._graph, inputs, {}, {})
        return tuple([self._copy_arrays(x) for x in results])

    def _copy_arrays(self, x: Any) -> Any:
        """Return an output with its arrays, also those in lists, copied to tensors."""
        if isinstance(x, list):
            return [self._copy_arrays(v) for v in x]
        return self._interpreter.tensor(x, self.device).copy() if isinstance(x, np.ndarray) else x

    def _check_input(self, v: ValueInfo, x: Any, sizes: dict[str, int]) -> Any:
        """Return a checked input as a tensor; add its named sizes to `sizes`.

        Raises: DTypeError, ShapeError, DeviceError if it is not what the model expects.
        """
        if x is None and v.kind == "optional":
            return None
        if isinstance(x, (list, tuple)) and v.kind != "tensor":
            return [self._check_input(ValueInfo(v.name, v.dtype, None), y, sizes) for y in x]
        if isinstance(x, dt.Tensor):
            if x.device is not self.device:
                raise dt.DeviceError(
                    f"onnx: the input {v.name!r} must be on the model's device {self.device}, got "
                    f"{x.device}; use x.to(device), or load the model with device="
                )
        else:
            x = dt.asarray(x, device=self.device, copy=True)
        if v.dtype is not None and x.dtype is not v.dtype:
            raise dt.DTypeError(
                f"onnx: the input {v.name!r} must be {v.dtype.name}, got {x.dtype.name}; use "
                f"x.astype(dt.{v.dtype.name})"
            )
        if v.shape is not None and v.kind == "tensor":
            _require_shape(v, x.shape, sizes)
        return x

    def __repr__(self) -> str:
        def names(values: tuple[ValueInfo, ...]) -> str:
            return ", ".join(v.name for v in values)

        return (
            f"<onnx model of {names(self.inputs)}: gives {names(self.outputs)}, on {self.device}>"
        )


def _require_shape(v: ValueInfo, shape: tuple[int, ...], sizes: dict[str, int]) -> None:
    """Raise ShapeError if a shape differs from an input's; store named sizes in `sizes`."""
    assert v.shape is not None
    fits = len(shape) == len(v.shape)
    for have, want in zip(shape, v.shape, strict=False):
        if isinstance(want, str):
            want = sizes.setdefault(want, have)
        fits = fits and (want is None or want == have)
    if not fits:
        wanted = ", ".join("any" if n is None else str(n) for n in v.shape)
        raise dt.ShapeError(
            f"onnx: the input {v.name!r} must have shape ({wanted}), got shape {tuple(shape)}"
        )


def load(model: Source, device: Any = None, *, limit: int | None = None) -> Model:
    """Load an ONNX model as a function of tensors.

    - `model`: a path, the bytes of a file, or a ModelProto.
    - `device`: the device that runs the model; None is the default device.
    - `limit`: the number of bytes its values may take at one time; None is 8 GiB. A value beyond it
      raises an error before it is allocated.

    Raises: UnavailableError if the package onnx is not installed; UnsupportedError with all
    operators that are unknown; ArgumentError, ShapeError, DTypeError, OutOfMemoryError for damaged
    or malicious files; OSError for one that cannot be opened. No code in a file is executed.
    See also: `export`, `Model`.
    Source: https://onnx.ai/onnx/repo-docs/IR.html
    See: docs/onnx.md.

    >>> import dovetail as dt
    >>> made = dt.onnx.export(lambda x: x + 1, dt.ones(2))
    >>> dt.onnx.load(made)(dt.zeros(2)).tolist()
    [1.0, 1.0]
    """
    onnx = import_onnx()
    proto, folder = _parse_model(onnx, model)
    budget = MemoryBudget(limit)
    try:
        reader = ModelReader(proto, folder, budget)
        graph = reader.read(proto)
    except dt.DovetailError:
        raise
    except VALUE_ERRORS as error:
        raise dt.ArgumentError(
            f"onnx.load: the model is damaged: {type(error).__name__}: {error}".partition("\n")[0]
        ) from error
    target = dt.default_device() if device is None else dt.device(device)
    metadata = {
        "producer": f"{proto.producer_name} {proto.producer_version}".strip(),
        "opsets": dict(reader.opsets),
        "ir_version": int(proto.ir_version),
        "name": proto.graph.name,
        "doc": proto.doc_string,
        **{p.key: p.value for p in proto.metadata_props},
    }
    return Model(graph, Interpreter(target, budget, reader), metadata)


def _parse_model(onnx: Any, model: Source) -> tuple[Proto, Path | None]:
    """Return a model's message, and its folder if it is a path.

    Raises: ArgumentError for a file or bytes that are no model, ArgumentTypeError for other
    objects, OSError if the file cannot be read.
    """
    if isinstance(model, onnx.ModelProto):
        return model, None
    if isinstance(model, (bytes, bytearray, memoryview)):
        raw, folder, source = bytes(model), None, "these bytes"
    elif isinstance(model, (str, os.PathLike)):
        path = Path(arguments.path("onnx.load", model, "model"))
        source, folder = str(path), path.parent
        if path.stat().st_size >= FILE_BYTES_MAX:
            raise dt.ArgumentError(
                f"onnx.load: {source} must be smaller than 2 GiB, as every ONNX model is"
            )
        raw = path.read_bytes()
    else:
        raise dt.ArgumentTypeError(
            "onnx.load: the model must be a path, bytes or a ModelProto, got "
            f"{type(model).__name__}"
        )
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(raw)
    except Exception as error:  # protobuf's own class, wherever it is defined
        raise dt.ArgumentError(f"onnx.load: {source} is not an ONNX model: {error}") from error
    if not proto.HasField("graph") or not proto.ir_version:
        raise dt.ArgumentError(f"onnx.load: {source} is not an ONNX model: it has no graph")
    return proto, folder
