"""Event files, read by TensorBoard's own reader."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dovetail as dt
import numpy as np
import pytest

pytest.importorskip("tensorboard")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # a warning of its reader


def events(folder: Path | str) -> list[Any]:
    """Return all events of a folder's files."""
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

    return [
        e
        for file in sorted(Path(folder).glob("events.*"))
        for e in EventFileLoader(str(file)).Load()
    ]


def values(folder: Path | str) -> list[tuple[int, Any]]:
    return [(e.step, v) for e in events(folder) for v in e.summary.value]


def number(value: Any) -> float:
    from tensorboard.util import tensor_util

    return float(tensor_util.make_ndarray(value.tensor))


def test_add_scalar_writes_values_and_steps(device: dt.Device, tmp_path: Path) -> None:
    with dt.tensorboard.SummaryWriter(tmp_path) as writer:
        assert writer.get_logdir() == str(tmp_path)
        for step in range(3):
            writer.add_scalar("loss", dt.asarray(step / 2), step)
        writer.add_scalar("exact", 0.1, 7, walltime=12.5, double_precision=True)
    found = values(tmp_path)
    assert [(s, v.tag, number(v)) for s, v in found[:3]] == [
        (0, "loss", 0), (1, "loss", 0.5), (2, "loss", 1)
    ]  # fmt: skip
    assert number(found[3][1]) == 0.1 and found[3][0] == 7
    assert events(tmp_path)[-1].wall_time == 12.5


def test_add_scalars_writes_one_chart(tmp_path: Path) -> None:
    with dt.tensorboard.SummaryWriter(tmp_path) as writer:
        writer.add_scalars("run/loss", {"train": 1.0, "test": np.float32(2)}, 3)
    assert [number(v) for _, v in values(tmp_path / "run_loss_train")] == [1]
    assert [number(v) for _, v in values(tmp_path / "run_loss_test")] == [2]


@pytest.mark.parametrize(
    "bins",
    ["tensorflow", "auto", 5, [-10.0, 0.0, 10.0], np.array([-10.0, 0.0, 10.0]),
     dt.asarray([-10, 0, 10], device="reference")],
)  # fmt: skip
def test_add_histogram_writes_counts(bins: Any, device: dt.Device, tmp_path: Path) -> None:
    from tensorboard.util import tensor_util

    with dt.tensorboard.SummaryWriter(tmp_path) as writer:
        x = dt.asarray([-3.0, 0.0, 0.5, 0.5, 2.0, float("nan")])
        writer.add_histogram("weights", x, 1, bins)
    ((_, value),) = values(tmp_path)
    rows = tensor_util.make_ndarray(value.tensor)
    assert rows[:, 2].sum() == 5
    inside = [(low, high, n) for low, high, n in rows if n]
    assert inside[0][0] <= -3 <= inside[0][1] and inside[-1][0] <= 2 <= inside[-1][1]


@pytest.mark.parametrize("bins", [[10.0, 20.0], np.array([-3.0, -2.0, -1.0])])
def test_histogram_of_values_outside_of_all_bins_is_empty(bins: Any, tmp_path: Path) -> None:
    from tensorboard.util import tensor_util

    with dt.tensorboard.SummaryWriter(tmp_path) as writer:
        writer.add_histogram("x", [0.5, 1.0], 1, bins)
    ((_, value),) = values(tmp_path)
    assert tensor_util.make_ndarray(value.tensor)[:, 2].sum() == 0


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")  # of TensorBoard's reader
@pytest.mark.parametrize("extreme", [[1.7e308], [-1.7e308, 0.0, 1e-320]])
def test_histogram_of_extreme_values_counts_all(extreme: list[float], tmp_path: Path) -> None:
    from tensorboard.util import tensor_util

    with dt.tensorboard.SummaryWriter(tmp_path) as writer:
        writer.add_histogram("x", extreme, 1)
    ((_, value),) = values(tmp_path)
    assert tensor_util.make_ndarray(value.tensor)[:, 2].sum() == len(extreme)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"bins": "foo"}, "bins .*got 'foo'"),
        ({"bins": 0}, "bins .*got 0"),
        ({"bins": [2.0, 1.0]}, "bins .*got .*monotonically"),
        ({"bins": [1.0]}, "bins must have at least two edges"),
        ({"bins": np.array(["a", "b"])}, "bins must hold numbers"),
        ({"bins": [math.nan, 1.0]}, "bins .*got"),
        ({"max_bins": 0}, "max_bins must be at least 1, got 0"),
    ],
)
def test_wrong_bins_raise(options: dict[str, Any], said: str, tmp_path: Path) -> None:
    with (
        dt.tensorboard.SummaryWriter(tmp_path) as writer,
        pytest.raises(dt.ArgumentError, match=rf"^SummaryWriter\.add_histogram: {said}"),
    ):
        writer.add_histogram("x", [0.5, 1.0], 1, **options)


def test_errors_of_a_writer_name_one_method(tmp_path: Path) -> None:
    with dt.tensorboard.SummaryWriter(tmp_path) as writer:
        calls: dict[str, Callable[[], None]] = {
            "add_scalar: scalar_value": lambda: writer.add_scalar("x", "y"),
            "add_scalar: global_step": lambda: writer.add_scalar("x", 1, math.inf),
            "add_scalars: tag_scalar_dict": lambda: writer.add_scalars("x", {"y": "z"}),
            "add_histogram: values": lambda: writer.add_histogram("x", "y"),
            "add_image: 'x'": lambda: writer.add_image("x", np.zeros((2, 3))),
            "add_images: 'x'": lambda: writer.add_images("x", np.zeros((2, 3))),
            "add_text: text_string": lambda: writer.add_text("x", 3),  # type: ignore[arg-type]  # that is the test
        }
        for name, call in calls.items():
            with pytest.raises(dt.DovetailError, match=rf"^SummaryWriter\.{name}[^:]*$"):
                call()


def test_add_histogram_with_fewer_bins(tmp_path: Path) -> None:
    with dt.tensorboard.SummaryWriter(tmp_path) as writer:
        writer.add_histogram("x", np.arange(100), 1, 50, max_bins=5)
        with pytest.raises(dt.ArgumentError, match="at least one finite value"):
            writer.add_histogram("x", [float("inf")], 1)


@pytest.mark.parametrize("axes", ["CHW", "HWC", "HW"])
def test_add_image_writes_pixels(axes: str, device: dt.Device, tmp_path: Path) -> None:
    import io

    from PIL import Image
    from tensorboard.util import tensor_util

    pixels = np.random.default_rng(0).integers(0, 256, (4, 6, 3), np.uint8)
    given = {"HWC": pixels, "CHW": pixels.transpose(2, 0, 1), "HW": pixels[:, :, 0]}[axes]
    with dt.tensorboard.SummaryWriter(tmp_path) as writer:
        writer.add_image("picture", dt.asarray(given), 1, dataformats=axes)
        writer.add_image("picture", dt.asarray(given / 255.0), 2, dataformats=axes)
    for _, value in values(tmp_path):
        width, height, png = tensor_util.make_ndarray(value.tensor)
        read = np.asarray(Image.open(io.BytesIO(png)))
        assert (int(width), int(height)) == (6, 4)
        assert np.abs(read.astype(int) - (pixels if axes != "HW" else pixels[:, :, 0])).max() <= 1


def test_add_images_writes_each_image(tmp_path: Path) -> None:
    from tensorboard.util import tensor_util

    with dt.tensorboard.SummaryWriter(tmp_path) as writer:
        writer.add_images("pictures", dt.zeros((5, 1, 4, 6), device="reference"))
    ((_, value),) = values(tmp_path)
    assert [int(x) for x in tensor_util.make_ndarray(value.tensor)[:2]] == [18, 8]


def test_add_text_writes_markdown(tmp_path: Path) -> None:
    from tensorboard.util import tensor_util

    with dt.tensorboard.SummaryWriter(tmp_path) as writer:
        writer.add_text("note", "**begun**", 4)
    ((step, value),) = values(tmp_path)
    assert step == 4 and value.metadata.plugin_data.plugin_name == "text"
    assert tensor_util.make_ndarray(value.tensor).tolist() == [b"**begun**"]


@pytest.mark.parametrize("captured", [False, True])
def test_add_graph_writes_a_graph(captured: bool, device: dt.Device, tmp_path: Path) -> None:
    from tensorboard.compat.proto.graph_pb2 import GraphDef

    w = dt.ones((3, 3))

    def model(x: dt.Tensor) -> dt.Tensor:
        return dt.softmax(x.sum(axis=0) * 2) @ w

    with dt.tensorboard.SummaryWriter(tmp_path) as writer:
        writer.add_graph(dt.jit(model) if captured else model, dt.ones((4, 3)))
    (raw,) = [e.graph_def for e in events(tmp_path) if e.graph_def]
    nodes = GraphDef.FromString(raw).node
    names = {n.name for n in nodes}
    launches = [n for n in nodes if n.op != "Placeholder"]
    assert launches and len(names) == len(nodes)
    assert all(i in names for n in nodes for i in n.input)
    assert any(i.startswith("0") for n in launches[1:] for i in n.input) or len(launches) == 1
    assert "load" in launches[0].attr["kernel"].s.decode()


def test_add_graph_of_an_untraceable_function_raises(tmp_path: Path) -> None:
    with (
        dt.tensorboard.SummaryWriter(tmp_path) as writer,
        pytest.raises(dt.CaptureError, match="float"),
    ):
        writer.add_graph(lambda x: x * float(x.sum()), dt.ones(3, device="reference"))


def test_invalid_values_raise(tmp_path: Path) -> None:
    with dt.tensorboard.SummaryWriter(tmp_path) as writer:
        with pytest.raises(dt.ArgumentTypeError, match="one number"):
            writer.add_scalar("x", dt.ones(3, device="reference"))
        with pytest.raises(dt.ArgumentTypeError, match="must hold numbers"):
            writer.add_scalar("x", "y")
        with pytest.raises(dt.ShapeError, match="dataformats="):
            writer.add_image("x", np.zeros((2, 3)))
        with pytest.raises(dt.ShapeError, match="4 channels, got 2"):
            writer.add_image("x", np.zeros((2, 3, 3)))
        with pytest.raises(dt.ShapeError, match="must have the axes NCHW"):
            writer.add_images("x", np.zeros((2, 3, 3)))


def test_writer_can_be_closed_and_reused(tmp_path: Path) -> None:
    writer = dt.tensorboard.SummaryWriter(tmp_path)
    writer.add_scalar("x", 1, 0)
    writer.flush()
    assert len(values(tmp_path)) == 1
    writer.close()
    writer.close()
    writer = dt.tensorboard.SummaryWriter(tmp_path, purge_step=0, filename_suffix=".second")
    writer.add_scalar("x", 2, 0)
    writer.close()
    assert [number(v) for _, v in values(tmp_path)] == [1, 2]
    assert any(e.HasField("session_log") for e in events(tmp_path))


def test_missing_tensorboard_is_named() -> None:
    code = (
        "import sys; sys.modules['tensorboard'] = None; import dovetail as dt\n"
        "try: dt.tensorboard.SummaryWriter('x')\n"
        "except ModuleNotFoundError as error: print(error)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.count("\n") == 1
    assert 'pip install "dovetail-tensor[tensorboard]"' in said.stdout


def test_track_shows_a_bar_only_on_terminals(capfd: pytest.CaptureFixture[str]) -> None:
    shown = dt.data.Track([1, 2, 3], "epoch")
    assert len(shown) == 3
    for _ in shown:
        shown.log(loss=object())  # the argument is not used
    assert capfd.readouterr() == ("", "")
    code = (
        "import dovetail as dt\nt = dt.data.Track(range(3), 'epoch')\n"
        "for x in t: t.log(loss=dt.asarray(0.25, device='reference'))"
    )
    import os

    env = {**os.environ, "FORCE_COLOR": "1", "TTY_COMPATIBLE": "1", "COLUMNS": "120"}
    made = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    assert made.returncode == 0, made.stderr
    assert "epoch" in made.stderr and "loss 0.25" in made.stderr and made.stdout == ""
