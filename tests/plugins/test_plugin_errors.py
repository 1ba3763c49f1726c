"""Unexpected exceptions of a backend name device, package and kernel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dovetail as dt
import pytest
from dovetail.backend import diskcache
from dovetail.backend.reference import ReferenceBackend
from dovetail.engine.events import counters
from dovetail.errors import CompileError, DeviceError, PluginError


@pytest.fixture
def wrong(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return a function that makes a method of the reference raise an exception."""

    def put(method: str, error: BaseException) -> None:
        def fail(*args: Any, **options: Any) -> Any:
            raise error

        monkeypatch.setattr(ReferenceBackend, method, fail)

    return put


def fresh() -> Any:
    """Return an expression whose kernel has not been compiled or bound before."""
    fresh.count += 1  # type: ignore[attr-defined]  # a counter
    x = dt.ones((3,) * (fresh.count % 4 + 1), device="reference")  # type: ignore[attr-defined]  # as above
    for _ in range(fresh.count):  # type: ignore[attr-defined]  # as above
        x = dt.hypot(x, 3.25) - x
    return x


fresh.count = 0  # type: ignore[attr-defined]  # a counter


@pytest.mark.parametrize("method", ["launch", "bind", "compile"])
def test_error_names_device_and_kernel_and_has_its_cause(method: str, wrong: Any) -> None:
    x = fresh()
    wrong(method, KeyError("oops"))
    with pytest.raises(PluginError) as e:
        dt.evaluate(x)
    text, cause = str(e.value), e.value.__cause__
    assert isinstance(cause, KeyError) and "KeyError: 'oops'" in text
    assert "on reference (dovetail" in text and "hypot" in text and "kernel " in text
    assert "dovetail test-backend reference" in text


def test_errors_in_cached_graphs_and_profiles_name_the_device(wrong: Any) -> None:
    def made() -> Any:
        return dt.ones(7, device="reference") * 41.5

    for _ in range(3):
        dt.evaluate(made())
    x, y = made(), made()
    wrong("launch", OSError("the bus is on fire"))
    with pytest.raises(PluginError, match=r"the launch of .* OSError: the bus is on fire"):
        dt.evaluate(x)
    with dt.profile(), pytest.raises(PluginError, match="the bus is on fire"):
        dt.evaluate(y)


def test_errors_in_captured_functions_name_the_device(wrong: Any) -> None:
    f = dt.jit(lambda x: dt.cos(x) * 2 + 17)
    x = dt.ones(5, device="reference")
    f(x).numpy(), f(x).numpy()
    wrong("launch", OSError("the bus is on fire"))
    with pytest.raises(PluginError, match=r"a replay of .*the bus is on fire"):
        f(x).numpy()


@pytest.mark.parametrize(
    "error", [DeviceError("the card is gone"), CompileError("no"), MemoryError("full")]
)
def test_intended_errors_are_unchanged(error: Exception, wrong: Any) -> None:
    x = fresh()
    wrong("launch", error)
    with pytest.raises(type(error)) as e:
        dt.evaluate(x)
    assert e.value is error and e.value.__cause__ is None


def test_keyboard_interrupt_is_unchanged(wrong: Any) -> None:
    x = fresh()
    wrong("launch", KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        dt.evaluate(x)


def test_binary_rejected_by_load_is_counted_and_recorded(
    wrong: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, forgotten = fresh(), []
    monkeypatch.setattr(diskcache, "read", lambda *key: b"made elsewhere")
    monkeypatch.setattr(diskcache, "remove_binary", lambda *key: forgotten.append(key))
    wrong("load", TypeError("this is no path"))
    before = counters.load_failures, counters.compiles
    with dt.profile() as p:
        dt.evaluate(x)
    refused, compiled = counters.load_failures - before[0], counters.compiles - before[1]
    assert refused == compiled == len(forgotten) > 0
    assert any("failed: TypeError: this is no path" in e["name"] for e in p.events)
