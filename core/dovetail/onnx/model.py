"""`dt.onnx.load`: a model of a file, which runs on any device."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

import dovetail as dt
from dovetail.extend import arguments

from ..nn.constructor_errors import Explained
from .library import Proto, library
from .limits import Limit
from .running import OTHERS, Run
from .structure import Graph, Reading, Value

__all__ = ["Model", "load"]

LARGEST = 1 << 31  # bytes of a file, which the format cannot have more of
Source: TypeAlias = "str | os.PathLike[str] | bytes | Proto"


class Model(Explained):
    """A model that was loaded: call it with its inputs, in their order.

    `inputs`, `outputs`: what it takes and gives (`name`, `dtype`, `shape`). `metadata`: what the
    file says of itself. `device`: where it runs. Where shapes do not depend on values, calls are
    captured (`dt.jit`).

    >>> import dovetail as dt
    >>> made = dt.onnx.export(lambda x: dt.tanh(x) * 2, dt.ones(3, device="reference"))
    >>> [value.name for value in dt.onnx.load(made, device="reference").inputs]
    ['x']
    """

    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    metadata: dict[str, Any]
    holds_no_tensors = True  # that change: captures keep its constants as they are

    def __init__(self, graph: Graph, run: Run, metadata: dict[str, Any]) -> None:
        self.inputs, self.outputs, self.metadata = graph.inputs, graph.outputs, metadata
        self.device = run.device
        self._graph, self._run = graph, run
        self._captures = all(v.kind == "tensor" for v in (*self.inputs, *self.outputs))
        self._captured = dt.jit(self._plain)

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """What the model gives: one tensor, or a tuple of them where it has several outputs.

        Raises: ArgumentError, ShapeError, DTypeError for inputs that do not fit.
        """
        if len(inputs) > len(self.inputs):
            raise dt.ArgumentError(
                f"onnx: the model takes {len(self.inputs)} inputs, not {len(inputs)}: "
                f"{self._listed()}"
            )
        given = dict(zip([v.name for v in self.inputs], inputs, strict=False))
        twice = sorted({*given} & {*named})
        if twice:
            raise dt.ArgumentError(f"onnx: {twice[0]!r} is given twice, by place and by name")
        made = self._made({**given, **named})
        return made[0] if len(made) == 1 else tuple(made)

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """What the model gives, by the names of its outputs.

        Raises: as a call.
        """
        return dict(zip([v.name for v in self.outputs], self._made(inputs), strict=True))

    def _listed(self) -> str:
        return ", ".join(v.name for v in self.inputs) or "none"

    def _made(self, inputs: Mapping[str, Any]) -> list[Any]:
        unknown = sorted({*inputs} - {v.name for v in self.inputs})
        missing = [v.name for v in self.inputs if v.name not in inputs and v.kind != "optional"]
        if unknown or missing:
            wrong = f"has no input {unknown[0]!r}" if unknown else f"needs {', '.join(missing)}"
            raise dt.ArgumentError(f"onnx: the model {wrong}; its inputs: {self._listed()}")
        sizes: dict[str, int] = {}
        given = [self._given(v, inputs.get(v.name), sizes) for v in self.inputs]
        if self._captures:
            try:
                return list(self._captured(*given))
            except dt.CaptureError:  # a shape or a branch depends on values
                self._captures = False
        return list(self._plain(*given))

    def _plain(self, *given: Any) -> tuple[Any, ...]:
        made = self._run.graph(self._graph, given, {}, {})
        return tuple([self._result(x) for x in made])

    def _result(self, x: Any) -> Any:
        if isinstance(x, list):
            return [self._result(v) for v in x]
        return self._run.tensor(x, self.device).copy() if isinstance(x, np.ndarray) else x

    def _given(self, v: Value, x: Any, sizes: dict[str, int]) -> Any:
        """An input as the graph takes it. Raises: where it does not fit."""
        if x is None and v.kind == "optional":
            return None
        if isinstance(x, (list, tuple)) and v.kind != "tensor":
            return [self._given(Value(v.name, v.dtype, None), y, sizes) for y in x]
        if isinstance(x, dt.Tensor):
            if x.device is not self.device:
                raise dt.DeviceError(
                    f"onnx: the input {v.name!r} is on {x.device}, and the model on {self.device}; "
                    "move it with x.to(device), or load the model with device="
                )
        else:
            x = dt.asarray(x, device=self.device, copy=True)
        if v.dtype is not None and x.dtype is not v.dtype:
            raise dt.DTypeError(
                f"onnx: the input {v.name!r} is {x.dtype.name}; the model takes {v.dtype.name}; "
                "cast it with astype()"
            )
        if v.shape is not None and v.kind == "tensor":
            _require_shape(v, x.shape, sizes)
        return x

    def __repr__(self) -> str:
        def said(values: tuple[Value, ...]) -> str:
            return ", ".join(v.name for v in values)

        return f"<onnx model of {said(self.inputs)}: gives {said(self.outputs)}, on {self.device}>"


def _require_shape(v: Value, shape: tuple[int, ...], sizes: dict[str, int]) -> None:
    assert v.shape is not None
    fits = len(shape) == len(v.shape)
    for have, want in zip(shape, v.shape, strict=False):
        if isinstance(want, str):
            want = sizes.setdefault(want, have)
        fits = fits and (want is None or want == have)
    if not fits:
        wanted = ", ".join("any" if n is None else str(n) for n in v.shape)
        raise dt.ShapeError(
            f"onnx: the input {v.name!r} has the shape {tuple(shape)}; the model takes ({wanted})"
        )


def load(model: Source, device: Any = None, *, limit: int | None = None) -> Model:
    """The model of an ONNX file, as a function of tensors.

    `model`: a path, the bytes of a file, or a ModelProto. `device`: where it runs; the default
    device unless given. `limit`: how many bytes its values may take at one time, 8 GiB unless
    given; what would take more is an error before there is memory for it.
    Raises: UnavailableError where the package onnx is not installed; NotYetError with all operators
    that are not known; ArgumentError, ShapeError, DTypeError, OutOfMemoryError for files that are
    damaged, or made to do harm; OSError for one that cannot be opened. Nothing in a file is run as
    code.
    Source: https://onnx.ai/onnx/repo-docs/IR.html
    See: docs/onnx.md.

    >>> import dovetail as dt
    >>> made = dt.onnx.export(lambda x: x + 1, dt.ones(2, device="reference"))
    >>> dt.onnx.load(made, device="reference")(dt.zeros(2, device="reference")).tolist()
    [1.0, 1.0]
    """
    onnx = library()
    proto, folder = _parsed(onnx, model)
    budget = Limit(limit)
    try:
        reading = Reading(proto, folder, budget)
        graph = reading.read(proto)
    except dt.DovetailError:
        raise
    except OTHERS as error:
        raise dt.ArgumentError(
            f"onnx.load: the model is damaged: {type(error).__name__}: {error}".partition("\n")[0]
        ) from error
    place = dt.default_device() if device is None else dt.device(device)
    said = {
        "producer": f"{proto.producer_name} {proto.producer_version}".strip(),
        "opsets": dict(reading.opsets), "ir_version": int(proto.ir_version),
        "name": proto.graph.name, "doc": proto.doc_string,
        **{p.key: p.value for p in proto.metadata_props},
    }  # fmt: skip
    return Model(graph, Run(place, budget, reading), said)


def _parsed(onnx: Any, model: Source) -> tuple[Proto, Path | None]:
    """The message, and the folder that it is from."""
    if isinstance(model, onnx.ModelProto):
        return model, None
    if isinstance(model, (bytes, bytearray, memoryview)):
        raw, folder, named = bytes(model), None, "these bytes"
    elif isinstance(model, (str, os.PathLike)):
        path = Path(arguments.path("onnx.load", model, "model"))
        named, folder = str(path), path.parent
        if path.stat().st_size >= LARGEST:
            raise dt.ArgumentError(f"onnx.load: {named} has 2 GiB or more, which no model has")
        raw = path.read_bytes()
    else:
        raise dt.ArgumentTypeError(
            f"onnx.load: a model is a path, bytes or a ModelProto, not {type(model).__name__}"
        )
    found = onnx.ModelProto()
    try:
        found.ParseFromString(raw)
    except Exception as error:  # protobuf's own class, wherever it is defined
        raise dt.ArgumentError(f"onnx.load: {named} is no ONNX model: {error}") from error
    if not found.HasField("graph") or not found.ir_version:
        raise dt.ArgumentError(f"onnx.load: {named} is no ONNX model: there is no graph in it")
    return found, folder
