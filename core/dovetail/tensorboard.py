"""Training logs for TensorBoard, written by TensorBoard's own event writer."""

from __future__ import annotations

import io
import math
import os
import socket
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

import dovetail as dt
from dovetail.extend import arguments, install_command, publish_all

from .nn.constructor_errors import Explained
from .nn.missing_names import make_module_getattr

__all__ = ["SummaryWriter"]

PROTOS = "tensorboard.compat.proto"


def _import(name: str) -> Any:
    """Import a module of TensorBoard. Raises: ModuleNotFoundError with the package to install."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "dt.tensorboard needs the package tensorboard: "
            f"{install_command('dovetail-tensor[tensorboard]')}"
        ) from error


_INT64 = (-(1 << 63), (1 << 63) - 1)


class SummaryWriter(Explained):
    """A writer of training logs that TensorBoard shows: `tensorboard --logdir runs`.

    - `log_dir`: the folder. Default: one in runs/ named for the time, the machine and `comment`.
    - `comment`: the end of the name of the default folder.
    - `purge_step`: TensorBoard hides what was written before for this step and later ones.
    - `max_queue`: the greatest number of events that wait to be written.
    - `flush_secs`: the longest wait of an event, in seconds.
    - `filename_suffix`: the end of the names of files.

    As a context manager it closes itself.
    Raises: ModuleNotFoundError if TensorBoard is not installed, OSError.

    >>> import tempfile
    >>> import dovetail as dt
    >>> with dt.tensorboard.SummaryWriter(tempfile.mkdtemp()) as writer:
    ...     for step in range(3):
    ...         writer.add_scalar("loss", 1 / (1 + step), step)
    """

    def __init__(
        self,
        log_dir: str | os.PathLike[str] | None = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: int = 120,
        filename_suffix: str = "",
    ) -> None:
        if log_dir is None:
            now = datetime.now().strftime("%b%d_%H-%M-%S")
            log_dir = Path("runs") / f"{now}_{socket.gethostname()}{comment}"
        self.log_dir = os.fspath(arguments.path("SummaryWriter", log_dir, "log_dir"))
        self._options = (
            arguments.integer("SummaryWriter", max_queue, "max_queue", 1, 1 << 31),
            arguments.integer("SummaryWriter", flush_secs, "flush_secs", 0, 1 << 31),
            arguments.instance("SummaryWriter", filename_suffix, "filename_suffix", str),
        )
        self._events = _import(f"{PROTOS}.event_pb2")
        self._summaries = _import(f"{PROTOS}.summary_pb2")
        self._writers: dict[str, Any] = {}
        if purge_step is not None:
            purge_step = _read_step("SummaryWriter", purge_step, "purge_step")
            self._write(self._events.Event(file_version="brain.Event:2"), purge_step, None)
            start = self._events.SessionLog(status=self._events.SessionLog.START)
            self._write(self._events.Event(session_log=start), purge_step, None)
        else:
            self._find_or_create_writer(self.log_dir)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def get_logdir(self) -> str:
        """Return the path of the folder of the log."""
        return self.log_dir

    def flush(self) -> None:
        """Write all events added so far to the files."""
        for writer in self._writers.values():
            writer.flush()

    def close(self) -> None:
        """Close the files; events added later go to new files."""
        for writer in self._writers.values():
            writer.close()
        self._writers.clear()

    # --- events
    def _find_or_create_writer(self, folder: str) -> Any:
        """Return the event writer of a folder; create it on first use."""
        if folder not in self._writers:
            files = _import("tensorboard.summary.writer.event_file_writer")
            self._writers[folder] = files.EventFileWriter(folder, *self._options)
        return self._writers[folder]

    def _write(
        self, event: Any, step: int | None, when: float | None, folder: str | None = None
    ) -> None:
        """Set time and step of an event, and add it to a folder's writer, by default the log's."""
        event.wall_time = time.time() if when is None else when
        if step is not None:
            event.step = step
        self._find_or_create_writer(folder or self.log_dir).add_event(event)

    def _add(
        self, op: str, value: Any, step: Any, when: float | None, folder: str | None = None
    ) -> None:
        """Add a summary with this value as an event; `op`: the method that errors name."""
        summary = self._summaries.Summary(value=[value])
        number = None if step is None else _read_step(op, step)
        self._write(self._events.Event(summary=summary), number, when, folder)

    # --- adding values
    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: Any = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """Add a number: a Python number, or a tensor of one element.

        - `tag`: its name, with "/" between groups.
        - `scalar_value`: the number.
        - `global_step`: the training step.
        - `walltime`: the time in seconds since 1970; None is now.
        - `new_style`: write it as a tensor, in TensorBoard's newer format.
        - `double_precision`: store it as float64.

        Raises: ArgumentTypeError.
        """
        op = "SummaryWriter.add_scalar"
        number = _read_number(op, "scalar_value", scalar_value)
        if not (new_style or double_precision):
            value = self._summaries.Summary.Value(tag=tag, simple_value=number)
        else:
            metadata = _import("tensorboard.plugins.scalar.metadata")
            dtype = np.float64 if double_precision else np.float32
            tensor = _import("tensorboard.util.tensor_util").make_tensor_proto(dtype(number))
            summary_metadata = metadata.create_summary_metadata("", "")
            value = self._summaries.Summary.Value(tag=tag, tensor=tensor, metadata=summary_metadata)
        self._add(op, value, global_step, walltime)

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: Mapping[str, Any],
        global_step: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Add several numbers to one chart; each is written to a sub-folder, as its own run.

        - `main_tag`: the name of the chart.
        - `tag_scalar_dict`: the numbers by name.
        - `global_step`, `walltime`: those of `add_scalar`.
        """
        op = "SummaryWriter.add_scalars"
        for tag, scalar in tag_scalar_dict.items():
            folder = f"{self.log_dir}/{main_tag.replace('/', '_')}_{tag}"
            number = _read_number(op, f"tag_scalar_dict[{tag!r}]", scalar)
            value = self._summaries.Summary.Value(tag=main_tag, simple_value=number)
            self._add(op, value, global_step, walltime, folder)

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: Any = None,
        bins: str | int | Sequence[float] | np.ndarray | dt.Tensor = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """Add a histogram of a tensor's finite elements.

        - `tag`: its name, with "/" between groups.
        - `values`: a tensor or an array.
        - `global_step`, `walltime`: those of `add_scalar`.
        - `bins`: "tensorflow", whose width grows with the distance from 0, or a value that
          `np.histogram` accepts; elements outside of all bins are in none.
        - `max_bins`: merge bins until there are at most so many.

        Raises: ArgumentError for no finite values and for bins that np.histogram refuses.
        """
        op = "SummaryWriter.add_histogram"
        array = _read_array(op, "values", values).astype(np.float64).reshape(-1)
        array = array[np.isfinite(array)]
        if array.size == 0:
            raise dt.ArgumentError(f"{op}: {tag!r} must have at least one finite value")
        counts, limits = _count(op, array, bins)
        if max_bins is not None:
            counts, limits = _merge_bins(
                counts, limits, arguments.integer(op, max_bins, "max_bins", 1)
            )
        occupied = np.flatnonzero(counts)
        low, high = (occupied[0], occupied[-1] + 1) if occupied.size else (0, len(counts))
        with np.errstate(over="ignore"):
            total, squares = array.sum(), array @ array
        histo = self._summaries.HistogramProto(
            min=array.min(),
            max=array.max(),
            num=len(array),
            sum=total,
            sum_squares=squares,
            bucket_limit=[limits[low], *limits[low + 1 : high + 1]],
            bucket=[0, *counts[low:high]],
        )
        self._add(op, self._summaries.Summary.Value(tag=tag, histo=histo), global_step, walltime)

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: Any = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """Add a picture: uint8, or floats between 0 and 1, with 1, 3 or 4 channels.

        - `tag`: its name, with "/" between groups.
        - `img_tensor`: the picture, a tensor or an array.
        - `global_step`, `walltime`: those of `add_scalar`.
        - `dataformats`: its axes, one of "CHW", "HWC" and "HW".

        Raises: ShapeError.
        """
        op = "SummaryWriter.add_image"
        pixels = _convert_pixels(op, tag, _read_array(op, "img_tensor", img_tensor), dataformats)
        self._add_picture(op, tag, pixels, global_step, walltime)

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: Any = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """Add several pictures of one size as one picture, in a square grid.

        - `tag`: its name, with "/" between groups.
        - `img_tensor`: the pictures, a tensor or an array.
        - `global_step`, `walltime`: those of `add_scalar`.
        - `dataformats`: its axes, one of "NCHW", "NHWC", "NHW" and others with "N".
        """
        op = "SummaryWriter.add_images"
        array = _read_array(op, "img_tensor", img_tensor)
        axes = dataformats.upper()
        if array.ndim != len(axes) or "N" not in axes:
            raise dt.ShapeError(f"{op}: {tag!r} must have the axes {axes}, got shape {array.shape}")
        each = np.moveaxis(array, axes.index("N"), 0)
        if not len(each):
            raise dt.ShapeError(f"{op}: {tag!r} must have at least one image")
        inner = axes.replace("N", "")
        tiles = [_convert_pixels(op, tag, x, inner) for x in each]
        columns = int(np.ceil(len(tiles) ** 0.5))
        tiles += [np.zeros_like(tiles[0])] * (-len(tiles) % columns)
        rows = [np.concatenate(tiles[i : i + columns], 1) for i in range(0, len(tiles), columns)]
        self._add_picture(op, tag, np.concatenate(rows), global_step, walltime)

    def _add_picture(
        self, op: str, tag: str, pixels: np.ndarray, step: Any, when: float | None
    ) -> None:
        """Encode (height, width, channels) pixels as PNG, and add the image as an event."""
        pictures, file = _import("PIL.Image"), io.BytesIO()
        one = pixels[:, :, 0] if pixels.shape[2] == 1 else pixels
        pictures.fromarray(one).save(file, "PNG")
        image = self._summaries.Summary.Image(
            height=pixels.shape[0],
            width=pixels.shape[1],
            colorspace=pixels.shape[2],
            encoded_image_string=file.getvalue(),
        )
        self._add(op, self._summaries.Summary.Value(tag=tag, image=image), step, when)

    def add_text(
        self, tag: str, text_string: str, global_step: Any = None, walltime: float | None = None
    ) -> None:
        """Add a text, which TensorBoard shows as Markdown.

        - `tag`: its name, with "/" between groups.
        - `text_string`: the text.
        - `global_step`, `walltime`: those of `add_scalar`.

        Raises: ArgumentTypeError.
        """
        op = "SummaryWriter.add_text"
        arguments.instance(op, text_string, "text_string", str)
        metadata = _import("tensorboard.plugins.text.metadata").create_summary_metadata("", "")
        tensor = _import("tensorboard.util.tensor_util").make_tensor_proto(
            np.array([text_string], object)
        )
        value = self._summaries.Summary.Value(
            tag=f"{tag}/text_summary", tensor=tensor, metadata=metadata
        )
        self._add(op, value, global_step, walltime)

    def add_graph(
        self,
        model: Any,
        input_to_model: Any = None,
        verbose: bool = False,
        use_strict_trace: bool = True,
    ) -> None:
        """Run a model to capture it, and add the graph of its launches.

        - `model`: a module, a function, or the result of `dt.jit`.
        - `input_to_model`: its argument, a tensor or a tuple of arguments.
        - `verbose`: also print the launches.
        - `use_strict_trace`: accepted for PyTorch's programs, without effect.

        Raises: CaptureError, ArgumentError if the model cannot be captured.
        """
        args = input_to_model if isinstance(input_to_model, (tuple, list)) else (input_to_model,)
        args = () if input_to_model is None else tuple(args)
        replay = _capture(model, args)
        if verbose:
            print(replay.text())
        graph = _build_graph_def(replay).SerializeToString()
        self._write(self._events.Event(graph_def=graph), None, None)


def _capture(model: Any, args: tuple[Any, ...]) -> Any:
    """Call a model up to 3 times in `dt.jit`; return its replay. Raises: ArgumentError for none."""
    f = model if hasattr(model, "programs") else dt.jit(lambda *args: model(*args), fullgraph=True)
    with dt.no_grad():
        for _ in range(3):  # the first calls may create state that later calls only use
            f(*args)
            explanation = dt.explain(f, *args)
            if explanation.captures:
                return explanation.captures[0]
    raise dt.ArgumentError(
        "SummaryWriter.add_graph: the model could not be captured: "
        f"{'; '.join(explanation.reasons) or 'no launches'}"
    )


def _build_graph_def(replay: Any) -> Any:
    """Build a TensorFlow GraphDef: a node per launch, with the writers of its reads as inputs."""
    graphs, nodes = _import(f"{PROTOS}.graph_pb2"), _import(f"{PROTOS}.node_def_pb2")
    values = _import(f"{PROTOS}.attr_value_pb2")
    node_defs: list[Any] = []
    writer: dict[Any, str] = {}  # the last node that wrote a buffer
    for i, launch in enumerate(replay.launches):
        inputs = []
        for buffer in launch.reads:
            if buffer not in writer:
                writer[buffer] = f"input_{len(writer)}"
                node_defs.append(nodes.NodeDef(name=writer[buffer], op="Placeholder"))
            if writer[buffer] not in inputs:
                inputs.append(writer[buffer])
        name = f"{i + 1:03}_{_clean_node_name(launch.name)}"
        node = nodes.NodeDef(
            name=name, op=_clean_node_name(launch.name), input=inputs, device=launch.device
        )
        for key, text in (("kernel", launch.text), ("grid", str(launch.grid))):
            node.attr[key].CopyFrom(values.AttrValue(s=text.encode()))
        node.attr["bytes"].CopyFrom(values.AttrValue(i=launch.nbytes))
        node_defs.append(node)
        writer.update(dict.fromkeys(launch.writes, name))
    return graphs.GraphDef(node=node_defs)


def _clean_node_name(name: str) -> str:
    """Return `name` with characters replaced that are not allowed in the name of a node."""
    return "".join(c if c.isalnum() or c in "_.-" else "_" for c in name) or "launch"


# --- values ---------------------------------------------------------------------------------------


def _read_array(op: str, name: str, x: Any) -> np.ndarray:
    """Return `x` as a NumPy array of numbers. Raises: ArgumentTypeError for others."""
    if isinstance(x, dt.Tensor):
        x = x.detach()
        x = (x.astype(dt.float32) if x.dtype is dt.bfloat16 else x).numpy()
    try:
        array: np.ndarray = np.asarray(x)
    except ValueError:
        raise arguments.refused(op, name, "numbers", x) from None
    if array.dtype.kind not in "biuf":
        raise dt.ArgumentTypeError(f"{op}: {name} must hold numbers, got {type(x).__name__}")
    return array


def _read_number(op: str, name: str, x: Any) -> float:
    """Return the value of one element as a Python number. Raises: ArgumentTypeError for others."""
    array = _read_array(op, name, x)
    if array.size != 1:
        raise dt.ArgumentTypeError(f"{op}: {name} must be one number, got shape {array.shape}")
    return array.reshape(())[()].item()  # type: ignore[no-any-return]  # a Python number


def _read_step(op: str, x: Any, name: str = "global_step") -> int:
    """Return a finite number, truncated to an int64. Raises: ArgumentError for inf and NaN."""
    number = _read_number(op, name, x)
    if not math.isfinite(number):
        raise dt.ArgumentError(f"{op}: {name} must be finite, got {number}")
    return arguments.integer(op, int(number), name, *_INT64)


def _count(op: str, array: np.ndarray, bins: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the counts of values in bins, and the bins' edges. Raises: ArgumentError."""
    if isinstance(bins, str) and bins == "tensorflow":
        bins = _compute_exponential_edges(array)
    elif isinstance(bins, (np.ndarray, dt.Tensor)):
        bins = _read_array(op, "bins", bins)
    try:
        counts, limits = np.histogram(array, bins)
    except ValueError as error:
        raise dt.ArgumentError(
            f"{op}: bins must be 'tensorflow', or bins that np.histogram accepts, got "
            f"{arguments.shown(bins)}: {error}"
        ) from None
    if not len(counts) or np.isnan(limits).any():
        raise dt.ArgumentError(
            f"{op}: bins must have at least two edges, which are numbers, got "
            f"{arguments.shown(bins)}"
        )
    return counts, limits


def _merge_bins(
    counts: np.ndarray, limits: np.ndarray, count_max: int
) -> tuple[np.ndarray, np.ndarray]:
    """Merge neighbouring bins, the same number of them each time, to at most `count_max`."""
    starts = np.arange(0, len(counts), -(-len(counts) // count_max))
    return np.add.reduceat(counts, starts), np.append(limits[starts], limits[-1])


def _compute_exponential_edges(array: np.ndarray) -> np.ndarray:
    """Return TensorFlow's bin edges: on each side of 0, an edge is 1.1 times the previous one."""
    largest = max(float(np.abs(array).max()), 1e-12)
    powers = np.arange(math.ceil((math.log(largest) - math.log(1e-12)) / math.log(1.1)) + 2)
    with np.errstate(over="ignore"):  # an infinite edge is one
        edges = 1e-12 * 1.1**powers
    return np.concatenate([-edges[::-1], [0.0], edges])


def _convert_pixels(op: str, tag: str, array: np.ndarray, axes: str) -> np.ndarray:
    """Convert pixels, floats times 255, to uint8 (height, width, channels). Raises: ShapeError."""
    axes = axes.upper()
    if array.ndim != len(axes) or sorted(axes) not in (["C", "H", "W"], ["H", "W"]):
        raise dt.ShapeError(
            f"{op}: {tag!r} must have the axes {axes}, got shape {array.shape}; pass dataformats="
        )
    if "C" in axes:
        array = np.transpose(array, [axes.index(c) for c in "HWC"])
    else:
        array = np.transpose(array, [axes.index(c) for c in "HW"])[:, :, None]
    if array.shape[2] not in (1, 3, 4):
        raise dt.ShapeError(f"{op}: {tag!r} must have 1, 3 or 4 channels, got {array.shape[2]}")
    if array.dtype != np.uint8:
        array = np.nan_to_num(array.astype(np.float64)) * 255
    return np.clip(array, 0, 255).astype(np.uint8)


publish_all(globals())


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:
    __getattr__ = make_module_getattr("tensorboard")
