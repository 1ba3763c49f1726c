"""Detection of the first NaN and of the line that computed it: `dt.autograd.detect_anomaly`."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable, Sequence

from ..engine import evaluate as run
from ..engine import provenance, tracer_api
from ..errors import AnomalyError
from ..graph.expr import Expr
from ..memory.tracing.stacktrace import caller_line
from ..ops import table as ops
from ..settings import Switch, current, enter_block, restore
from ..tensor.host import item
from ..tensor.primitives import apply, reduce
from ..tensor.tensor import Tensor, create_tensor
from .tape import Node, PropagatedGradient, SavedValue


class detect_anomaly(Switch):
    """A context in which the first NaN that an op computes raises an error with the user's line.

    Each op runs at once, and its result is checked. If the result has a NaN and no operand has one,
    AnomalyError names the op, its operands and its line. In a backward pass it names the op whose
    gradient has the NaN, and the line that recorded that op, if that was inside the context, too.
    It can be a decorator. It is slow: use it to find a fault.
    Raises: nothing by itself.

    >>> import dovetail as dt
    >>> x = dt.asarray([1.0, -1.0])
    >>> with dt.autograd.detect_anomaly():
    ...     try:
    ...         dt.log(x)
    ...     except dt.AnomalyError as error:
    ...         print(str(error)[:28])
    log: produced the first NaN,
    """

    def __init__(self) -> None:
        super().__init__(eager=True, anomaly=AnomalyChecker())


class AnomalyChecker:
    """A checker of results that remembers where ops were recorded. `inf`: also check infinities."""

    def __init__(self, inf: bool = False) -> None:
        self._is_bad = _is_not_finite if inf else _has_nan
        self._what = "infinity or NaN" if inf else "NaN"
        self._context_name = "debug_nans" if inf else "detect_anomaly"

    def check_node(self, e: Expr) -> None:
        """Compute a node and its pending operands, and check each; store the user's line.

        Raises: AnomalyError if a result has a NaN and none of its operands has.
        """
        if e.tape is not None and getattr(e.tape, "recorded_line", None) is None:
            e.tape.recorded_line = caller_line()
        self._check_recursive(e, "at")

    def _check_recursive(self, e: Expr, prefix: str) -> None:
        """Compute a node and its pending operands, operands first; check each unless traced."""
        op, args = e.op, e.args
        if op is None or tracer_api.current() is not None:
            run.evaluate((e,), True)  # under vmap the batched op outside is checked instead
            return
        for a in args:
            if type(a) is Expr and a.op is not None:
                self._check_recursive(a, "in a pending expression at")
        run.evaluate((e,), True)
        if not self._is_bad(e) or any(self._is_bad(a) for a in args):
            return
        operands = ", ".join(repr(a.spec) if type(a) is Expr else repr(a) for a in args)
        raise AnomalyError(
            f"{op.name}: produced the first {self._what}, {self._describe_origin(e, prefix)}, from "
            f"{operands}, which have none; inspect the values there, or use dt.where or dt.clip"
        )

    def check_call(
        self,
        name: str,
        work: Callable[..., Tensor | None],
        inputs: Sequence[object],
        operands: list[Expr],
    ) -> Tensor | None:
        """Return `work(*inputs)`; check only that result, not the steps that lead to it.

        Raises: AnomalyError if it has a NaN that no operand has.
        """
        before = current()
        try:
            enter_block(_UNCHECKED)
            result = work(*inputs)
        finally:
            restore(before)
        if result is None or tracer_api.current() is not None:
            return result
        if self._is_bad(result._expr) and not any(map(self._is_bad, operands)):
            of = ", ".join(repr(a.spec) for a in operands)
            raise AnomalyError(
                f"{name}: produced the first {self._what}, from {of}, which have none"
            )
        return result

    @staticmethod
    def _describe_origin(e: Expr, when: str) -> str:
        """Return the line that recorded a node if it is known, else the line that runs now."""
        noted = provenance.line_of(e)
        return f"{when} {caller_line()}" if noted is None else f"recorded by {noted}"

    def run_backward(
        self, n: Node, *gradient_and_result: PropagatedGradient | SavedValue | None
    ) -> list[PropagatedGradient | None]:
        """Run a node's backward; return its gradients. Raises: AnomalyError that names the node."""
        try:
            return n.backward(*gradient_and_result)
        except AnomalyError as error:
            line = getattr(n, "recorded_line", None)
            where = f"outside of {self._context_name}" if line is None else f"at {line}"
            raise AnomalyError(
                f"backward: the gradient of {n.name}, which was recorded {where}, has the first "
                f"{self._what}: {error}"
            ) from error


def _has_nan(a: object) -> bool:
    """Return True if a value has a NaN; compute it if it is pending."""
    if type(a) is not Expr:
        return isinstance(a, (float, complex)) and (math.isnan(a.real) or math.isnan(a.imag))
    return _test_elements(ops.ISNAN, ops.ANY, a)


def _is_not_finite(a: object) -> bool:
    """Return True if a value has a NaN or an infinity; compute it if it is pending."""
    if type(a) is not Expr:
        finite = not isinstance(a, (float, complex)) or cmath.isfinite(a)
        return not finite
    return (
        a.spec.dtype.kind in "fc"
        and a.spec.size > 0
        and not _test_elements(ops.ISFINITE, ops.ALL, a)
    )


def _test_elements(test: ops.Op, over: ops.Op, a: Expr) -> bool:
    """Evaluate `over` of the elementwise `test`; return the bool, False for ints or no element."""
    if a.spec.dtype.kind not in "fc" or not a.spec.size:
        return False
    before = current()
    try:
        enter_block(_CHECK_SETTINGS)
        mask = apply(test, (create_tensor(a),))
        return bool(item(reduce(over, mask, tuple(range(mask.ndim)), False)))
    finally:
        restore(before)


_UNCHECKED = Switch(anomaly=None)
_CHECK_SETTINGS = Switch(eager=False, anomaly=None, grad=False)
