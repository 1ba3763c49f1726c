"""Plans of several launches, submitted in one call to backends that accept batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import dovetail as dt
import numpy as np
import partial_devices as partial
import pytest
from dovetail.backend.interface import Backend
from dovetail.engine.evaluate import counters
from dovetail.errors import OutOfMemoryError, PluginError
from dovetail.plugins.registry import open_device

RNG = np.random.default_rng(5)
X = RNG.standard_normal((6, 6)).astype("f4")


@pytest.fixture
def networked() -> Iterator[dt.Device]:
    with partial.installed(partial.Networked) as [dev]:
        yield dev


def five_products(x: dt.Tensor) -> dt.Tensor:
    """Return five products, each of which needs the one before."""
    y = x
    for _ in range(5):
        y = y @ x
    return y


def count_messages(dev: dt.Device, work: Callable[[], object]) -> tuple[int, int]:
    """Return how many messages some work sends, and how many launches are in them."""
    backend: Any = open_device(dev).backend
    before = backend.messages, counters.launches
    work()
    return backend.messages - before[0], counters.launches - before[1]


def test_plan_of_five_launches_is_one_message(networked: dt.Device) -> None:
    """Planned, found by its key, and matched by a guard."""
    expected = five_products(dt.asarray(X, device="reference")).numpy()
    x = dt.asarray(X, device=networked)
    recognised = counters.graph_hits
    for _ in range(5):
        y = five_products(x)
        assert count_messages(networked, lambda y=y: dt.evaluate(y)) == (1, 5)
        assert y.numpy().tobytes() == expected.tobytes()
    assert counters.graph_hits >= recognised + 2


def test_single_launch_is_submitted_alone(networked: dt.Device) -> None:
    x = dt.asarray(X, device=networked)
    assert count_messages(networked, lambda: dt.evaluate(x * 2 + 1)) == (1, 1)
    assert open_device(networked).backend.largest == 0  # type: ignore[attr-defined]


def test_batched_writes_in_place_equal_the_reference(networked: dt.Device) -> None:
    def program(dev: dt.Device) -> Any:
        x = dt.asarray(X, device=dev)
        x[...] = five_products(x) * 0.5
        x += five_products(x)
        return x.numpy().tobytes()

    assert program(networked) == program(dt.device("reference"))
    x = dt.asarray(X, device=networked)
    messages, launches = count_messages(networked, lambda: x.__iadd__(five_products(x)))
    assert messages < launches


def test_several_roots_on_a_stream_equal_the_reference(networked: dt.Device) -> None:
    def program(dev: dt.Device) -> list[bytes]:
        with dt.Stream(dev) as stream:
            x = dt.asarray(X, device=dev)
            roots = [five_products(x * k) for k in range(3)]
            dt.evaluate(*roots)
        stream.synchronize()
        return [r.numpy().tobytes() for r in roots]

    expected = program(dt.device("reference"))
    for _ in range(4):
        assert program(networked) == expected


def test_captured_functions_send_one_message(networked: dt.Device) -> None:
    captured = dt.jit(five_products)
    x = dt.asarray(X, device=networked)
    expected = five_products(dt.asarray(X, device="reference")).numpy()
    captured(x)
    for _ in range(3):
        found: list[dt.Tensor] = []
        assert count_messages(networked, lambda found=found: found.append(captured(x))) == (1, 5)
        assert found[0].numpy().tobytes() == expected.tobytes()


def test_index_checks_split_a_batch(networked: dt.Device) -> None:
    """Launches that check indices are submitted alone; no check is lost."""
    x = dt.asarray(X, device=networked)
    for _ in range(3):
        y = five_products(five_products(x)[dt.asarray([0, 1, 2, 3, 4, -1], device=networked)])
        reference = dt.asarray(X, device="reference")
        i = dt.asarray([0, 1, 2, 3, 4, -1], device="reference")
        assert y.numpy().tobytes() == five_products(five_products(reference)[i]).numpy().tobytes()
    bad = five_products(x[dt.asarray([0, 1, 2, 3, 4, 6], device=networked)])
    with pytest.raises(dt.OutOfRangeError):
        bad.numpy()


def test_earlier_index_check_does_not_split_a_batch(networked: dt.Device) -> None:
    """Results derived from it still carry the check."""
    for last in (5, 6):
        x = dt.asarray(X, device=networked)[dt.asarray([0, 1, 2, 3, 4, last], device=networked)]
        dt.evaluate(x)
        y = five_products(x)
        assert count_messages(networked, lambda y=y: dt.evaluate(y)) == (1, 5)
        if last == 5:
            assert (
                y.numpy().tobytes()
                == five_products(dt.asarray(X, device="reference")).numpy().tobytes()
            )
        else:
            with pytest.raises(dt.OutOfRangeError, match="6 is out of range"):
                y.numpy()


def test_profile_shows_each_launch_of_a_batch(networked: dt.Device) -> None:
    y = five_products(dt.asarray(X, device=networked))
    with dt.profile() as p:
        dt.evaluate(y)
    assert sum(line.count for line in p.lines() if line.name.startswith("launch ")) == 5


def test_temporaries_stay_allocated_until_the_batch_is_sent(networked: dt.Device) -> None:
    """Otherwise another tensor could get the same memory and be overwritten."""
    opened = open_device(networked)
    backend, taken = opened.backend, []
    original = backend.launch_all

    def launch_all(launches: Sequence[Any], stream: Any = None) -> None:
        used = {(id(at[k]), at[k + 1]) for _, at, _ in launches for k in range(0, len(at), 2)}
        mine = [opened.allocate(144, None) for _ in range(20)]
        taken.append({(id(p.handle), p.offset) for p in mine} & used)
        original(launches, stream)

    backend.launch_all = launch_all  # type: ignore[method-assign]
    dt.evaluate(five_products(dt.asarray(X, device=networked)))
    assert taken == [set()]


def test_full_memory_flushes_the_batch_first(networked: dt.Device) -> None:
    x = dt.asarray(np.tile(X, (50_000, 1)), device=networked)  # 7 200 000 bytes
    w = dt.asarray(X, device=networked)
    dt.evaluate(x, w)
    allocator = open_device(networked).allocator
    allocator.empty_cache()
    allocator.set_limit(allocator.stats().reserved_bytes + (50 << 20))
    y = x
    for _ in range(8):
        y = y @ w
    messages, launches = count_messages(networked, lambda: dt.evaluate(y))
    assert 1 < messages < launches == 8
    more = [y @ (w + k) for k in range(9)]
    with pytest.raises(OutOfMemoryError):
        dt.evaluate(*more)


def test_error_of_a_batch_names_all_launches(networked: dt.Device) -> None:
    def launch_all(launches: Sequence[Any], stream: Any = None) -> None:
        raise OSError("the line is dead")

    open_device(networked).backend.launch_all = launch_all  # type: ignore[method-assign]
    with pytest.raises(PluginError, match=r"launch_all of matmul, matmul.*the line is dead") as e:
        dt.evaluate(five_products(dt.asarray(X, device=networked)))
    assert str(e.value).count("kernel matmul") >= 5


def test_companion_work_splits_a_batch() -> None:
    with partial.installed(partial.PartlyNetworked) as [dev]:

        def program(dev: dt.Device) -> dt.Tensor:
            x = dt.asarray(X, device=dev)
            return five_products(dt.cumulative_sum(five_products(x), axis=0) * 0.01)

        y = program(dev)
        messages, launches = count_messages(dev, lambda: dt.evaluate(y))
        assert y.numpy().tobytes() == program(dt.device("reference")).numpy().tobytes()
        assert messages == 2 and launches >= 11


def test_backend_without_launch_all_is_not_called(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object) -> None:
        raise AssertionError("launch_all was called")

    assert not open_device("reference").takes_batches
    monkeypatch.setattr(Backend, "launch_all", refuse)
    dt.evaluate(five_products(dt.asarray(X, device="reference")))
    captured = dt.jit(five_products)
    for _ in range(3):
        captured(dt.asarray(X, device="reference"))
