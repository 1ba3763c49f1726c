"""`dt.debug_nans` and `dt.debug_lines`: which op and which line it was."""

from __future__ import annotations

import sys
import threading

import dovetail as dt
import numpy as np
import pytest
from dovetail.engine import provenance
from dovetail.settings import flags

HERE = __file__


def here(back: int = 1) -> int:
    """The line of the caller."""
    return sys._getframe(back).f_lineno


def tensor(*values: float) -> dt.Tensor:
    return dt.asarray([*values], device="reference")


def test_the_first_infinity_is_an_error_with_its_line() -> None:
    x = tensor(4.0, 0.0)
    with dt.debug_nans():
        y = x * 2
        with pytest.raises(dt.AnomalyError) as error:
            line = here(); y = 1 / y  # fmt: skip  # noqa: E702
        assert str(error.value).startswith(
            f"divide: made the first infinity or NaN, at {HERE}:{line}"
        )
    assert (1 / tensor(0.0)).tolist() == [np.inf], "outside nobody looks"


def test_what_was_infinite_before_is_nobodys_fault() -> None:
    x = tensor(np.inf, 1.0)
    with dt.debug_nans():
        assert (x + 1).tolist() == [np.inf, 2.0]
        assert dt.full((2,), np.inf, device="reference").tolist() == [np.inf] * 2
        mask = dt.asarray([True, False], device="reference")
        assert dt.where(mask, tensor(1.0, 1.0), -np.inf).tolist() == [1.0, -np.inf]
        assert (dt.arange(3, device="reference") + 1).tolist() == [1, 2, 3]
        complex_ = dt.asarray([1j, 2j], device="reference")
        assert (complex_ * 2).tolist() == [2j, 4j]


def test_infinities_may_be_let_through() -> None:
    with dt.debug_nans(inf=False):
        assert (1 / tensor(0.0)).tolist() == [np.inf]
        with pytest.raises(dt.AnomalyError, match=r"^log: made the first NaN, at"):
            dt.log(tensor(-1.0))
    with pytest.raises(dt.ArgumentTypeError, match="inf"):
        dt.debug_nans(inf="yes")  # type: ignore[arg-type]


def test_the_way_back_names_the_op() -> None:
    x = tensor(0.0, 1.0).requires_grad_()
    with dt.debug_nans():
        line = here(); y = dt.sqrt(x).sum()  # fmt: skip  # noqa: E702
        with pytest.raises(
            dt.AnomalyError, match=rf"gradient of sqrt, .* at .*:{line}, .* infinity"
        ):
            y.backward()


def test_it_starts_and_stops_without_a_block_and_is_of_its_thread() -> None:
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


def test_an_error_in_evaluation_names_the_lines() -> None:
    x = dt.broadcast_to(tensor(1.0), (1 << 58,))
    with dt.debug_lines():
        first = here(); y = x * 2.5  # fmt: skip  # noqa: E702
        second = here(); y = dt.tanh(y)  # fmt: skip  # noqa: E702
        with pytest.raises(dt.OutOfMemoryError) as error:
            dt.evaluate(y)
    (note,) = error.value.__notes__
    assert note == (
        "It was computing what was recorded by: "
        f"tanh at {HERE}:{second}, multiply at {HERE}:{first}"
    )
    with pytest.raises(dt.OutOfMemoryError) as error:
        dt.evaluate(x * 2.5)
    assert not hasattr(error.value, "__notes__"), "outside nothing is noted"


def test_known_graphs_name_their_lines_too() -> None:
    x = dt.ones(1, device="reference")
    for n in (7, 7, 7, 1 << 58):
        with dt.debug_lines():
            line = here(); y = dt.broadcast_to(x, (n,)) * 0.75  # fmt: skip  # noqa: E702
            if n == 7:
                dt.evaluate(y)
                continue
            with pytest.raises(dt.OutOfMemoryError) as error:
                dt.evaluate(y)
    assert f"multiply at {HERE}:{line}" in error.value.__notes__[0]


def test_nothing_is_noted_outside() -> None:
    with dt.debug_lines():
        inside = tensor(1.0) + 1
    outside = tensor(1.0) + 1
    assert provenance.line_of(outside._expr) is None
    assert str(provenance.line_of(inside._expr)).startswith(f"add at {HERE}")
    assert not flags.profiled
    (outside * 2).tolist()
    assert flags.depth > 0, "ops still ask"


def test_work_stays_pending_and_is_the_same() -> None:
    x = tensor(*range(50))
    with dt.debug_lines():
        y = (x * 3 + 1).sum()
        assert y._expr.op is not None and len(dt.explain(y).launches) == 1
    assert y.item() == (x * 3 + 1).sum().item()
    assert "recorded by" not in dt.draw_graph(x * 2).svg()


def test_anomalies_of_pending_work_name_where_it_was_recorded() -> None:
    with dt.debug_lines():
        line = here(); bad = dt.log(tensor(-1.0))  # fmt: skip  # noqa: E702
    with dt.debug_nans(), pytest.raises(dt.AnomalyError, match=rf"recorded by log at .*:{line},"):
        bad + 1
