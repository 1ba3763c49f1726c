"""`dt.debug_nans` and `dt.record_lines` name the op and the line of an error."""

from __future__ import annotations

import sys
import threading

import dovetail as dt
import numpy as np
import pytest
from dovetail.engine import provenance
from dovetail.settings import flags

HERE = __file__


def current_line(back: int = 1) -> int:
    """Return the line number of the caller."""
    return sys._getframe(back).f_lineno


def tensor(*values: float) -> dt.Tensor:
    return dt.asarray([*values], device="reference")


def test_debug_nans_names_the_line_of_the_first_infinity() -> None:
    x = tensor(4.0, 0.0)
    with dt.debug_nans():
        y = x * 2
        with pytest.raises(dt.AnomalyError) as error:
            line = current_line(); y = 1 / y  # fmt: skip  # noqa: E702
        assert str(error.value).startswith(
            f"divide: produced the first infinity or NaN, at {HERE}:{line}"
        )
    assert (1 / tensor(0.0)).tolist() == [np.inf], "outside nobody looks"


def test_debug_nans_accepts_infinities_from_before() -> None:
    x = tensor(np.inf, 1.0)
    with dt.debug_nans():
        assert (x + 1).tolist() == [np.inf, 2.0]
        assert dt.full((2,), np.inf, device="reference").tolist() == [np.inf] * 2
        mask = dt.asarray([True, False], device="reference")
        assert dt.where(mask, tensor(1.0, 1.0), -np.inf).tolist() == [1.0, -np.inf]
        assert (dt.arange(3, device="reference") + 1).tolist() == [1, 2, 3]
        complex_ = dt.asarray([1j, 2j], device="reference")
        assert (complex_ * 2).tolist() == [2j, 4j]


def test_debug_nans_with_inf_false_ignores_infinities() -> None:
    with dt.debug_nans(inf=False):
        assert (1 / tensor(0.0)).tolist() == [np.inf]
        with pytest.raises(dt.AnomalyError, match=r"^log: produced the first NaN, at"):
            dt.log(tensor(-1.0))
    with pytest.raises(dt.ArgumentTypeError, match="inf"):
        dt.debug_nans(inf="yes")  # type: ignore[arg-type]


def test_debug_nans_names_the_op_in_backward() -> None:
    x = tensor(0.0, 1.0).requires_grad_()
    with dt.debug_nans():
        line = current_line(); y = dt.sqrt(x).sum()  # fmt: skip  # noqa: E702
        with pytest.raises(
            dt.AnomalyError, match=rf"gradient of sqrt, .* at .*:{line}, .* infinity"
        ):
            y.backward()


def test_debug_nans_start_and_stop_apply_to_their_thread() -> None:
    watch = dt.debug_nans()
    watch.start()
    try:
        with pytest.raises(dt.AnomalyError):
            1 / tensor(0.0)
        seen: list[object] = []
        thread = threading.Thread(target=lambda: seen.append((1 / tensor(0.0)).tolist()))
        thread.start()
        thread.join()
        assert seen == [[np.inf]]
    finally:
        watch.stop()
    assert (1 / tensor(0.0)).tolist() == [np.inf]


# --- lines


def test_debug_lines_names_the_lines_in_an_evaluation_error() -> None:
    x = dt.broadcast_to(tensor(1.0), (1 << 58,))
    with dt.record_lines():
        first = current_line(); y = x * 2.5  # fmt: skip  # noqa: E702
        second = current_line(); y = dt.tanh(y)  # fmt: skip  # noqa: E702
        with pytest.raises(dt.OutOfMemoryError) as error:
            dt.evaluate(y)
    (note,) = error.value.__notes__
    assert note == (
        "It was computing expressions recorded by: "
        f"tanh at {HERE}:{second}, multiply at {HERE}:{first}"
    )
    with pytest.raises(dt.OutOfMemoryError) as error:
        dt.evaluate(x * 2.5)
    assert not hasattr(error.value, "__notes__"), "outside nothing is noted"


def test_debug_lines_names_lines_of_cached_graphs() -> None:
    x = dt.ones(1, device="reference")
    for n in (7, 7, 7, 1 << 58):
        with dt.record_lines():
            line = current_line(); y = dt.broadcast_to(x, (n,)) * 0.75  # fmt: skip  # noqa: E702
            if n == 7:
                dt.evaluate(y)
                continue
            with pytest.raises(dt.OutOfMemoryError) as error:
                dt.evaluate(y)
    assert f"multiply at {HERE}:{line}" in error.value.__notes__[0]


def test_debug_lines_records_nothing_outside_of_its_block() -> None:
    with dt.record_lines():
        inside = tensor(1.0) + 1
    outside = tensor(1.0) + 1
    assert provenance.line_of(outside._expr) is None
    assert str(provenance.line_of(inside._expr)).startswith(f"add at {HERE}")
    assert not flags.is_observed
    (outside * 2).tolist()
    assert flags.depth > 0, "ops still ask"


def test_debug_lines_keeps_work_pending() -> None:
    x = tensor(*range(50))
    with dt.record_lines():
        y = (x * 3 + 1).sum()
        assert y._expr.op is not None and len(dt.explain(y).launches) == 1
    assert y.item() == (x * 3 + 1).sum().item()
    assert "recorded by" not in dt.draw_graph(x * 2).svg()


def test_debug_nans_names_the_line_that_recorded_pending_work() -> None:
    with dt.record_lines():
        line = current_line(); bad = dt.log(tensor(-1.0))  # fmt: skip  # noqa: E702
    with dt.debug_nans(), pytest.raises(dt.AnomalyError, match=rf"recorded by log at .*:{line},"):
        bad + 1
