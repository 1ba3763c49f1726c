"""`dt.kernel`: unsupported syntax and indices out of range raise errors with the user's line."""

from __future__ import annotations

import re
from typing import Any

import dovetail as dt
import numpy as np
import pytest

X = np.arange(6.0)


def refused(k: Any, *args: Any, kind: type[Exception] = dt.KernelError) -> str:
    with pytest.raises(kind) as caught:
        k(*[dt.asarray(a.copy()) if isinstance(a, np.ndarray) else a for a in args])
    return str(caught.value)


def shows(said: str, what: str, line: str) -> bool:
    """Return True if a message contains a text, this file and the user's line."""
    return (
        what in said
        and re.search(rf'File ".*test_bad_kernels.py", line \d+\n    {re.escape(line)}', said)
        is not None
    )


# Bodies of a kernel of (out: dt.Out, x: dt.In, n: int, c: float), the message, and its line.
BODIES = [
    ("while i < 3:\n    out[i] = 1.0", "no 'while', whose number of rounds", "while i < 3:"),
    ("try:\n    out[i] = 1.0\nexcept ValueError:\n    pass", "no 'try'", "try:"),
    ("with x:\n    out[i] = 1.0", "no 'with'", "with x:"),
    ("raise ValueError", "no 'raise'", "raise ValueError"),
    ("assert i", "no 'assert'", "assert i"),
    ("y = [1, 2]", "no lists", "y = [1, 2]"),
    ("y = {}", "no dicts", "y = {}"),
    ("y = [k for k in range(3)]", "no lists", "y = [k for k in range(3)]"),
    ("y = lambda k: k", "no 'lambda'", "y = lambda k: k"),
    ("out[i] = x[1:2]", "no slices", "out[i] = x[1:2]"),
    ("out[i] = 'a'", "cannot use a str", "out[i] = 'a'"),
    ("out[i] = x @ x", "no '@'", "out[i] = x @ x"),
    ("out[i] = i is c", "no 'is'", "out[i] = i is c"),
    ("print(i)", "has no effect", "print(i)"),
    ("out[i] = open(i)", "cannot call open", "out[i] = open(i)"),
    ("out[i] = dt.sum(x)", "must have a generator", "out[i] = dt.sum(x)"),
    ("out[i] = y", "y is not defined here", "out[i] = y"),
    ("if c > 1:\n    y = 1.0\nout[i] = y", "y may have no value here", "out[i] = y"),
    ("for k in range(n):\n    y = 1.0\nout[i] = y", "may have no rounds", "out[i] = y"),
    ("for k in range(n):\n    pass\nout[i] = k", "a loop that has ended", "out[i] = k"),
    ("for k in x:\n    out[i] = k", "must be `for k in range", "for k in x:"),
    ("for k in range(0, n, n):\n    out[i] = k", "the step of range", "for k in range(0, n, n):"),
    (
        "for k in range(3):\n    pass\nelse:\n    out[i] = 1",
        "cannot have 'else'",
        "for k in range(3):",
    ),
    ("out[i, i] = 1.0", "out has 1 axis, got 2 indices", "out[i, i] = 1.0"),
    ("out[c] = 1.0", "an index must be an integer", "out[c] = 1.0"),
    ("x[i] = 1.0", "x is dt.In and cannot be written", "x[i] = 1.0"),
    ("out[i] += 1.0", "out is read and written", "out[i] += 1.0"),
    ("y = out[i]", "out is dt.Out and cannot be read", "y = out[i]"),
    ("out = 3", "out is a tensor; write to its elements", "out = 3"),
    ("return i", "a kernel cannot return a value", "return i"),
    ("break", "'break' can only leave a loop", "break"),
    ("dt.atomic_add(out, i, 1.0)", "got float64", "dt.atomic_add(out, i, 1.0)"),
    ("dt.atomic_add(x, i, 1.0)", "x is dt.In", "dt.atomic_add(x, i, 1.0)"),
    ("y = dt.atomic_add(out, i, 1)", "returns nothing", "y = dt.atomic_add(out, i, 1)"),
    (
        "out[i] = sum(x[k] for k in x)",
        "must be `for k in range",
        "out[i] = sum(x[k] for k in x)",
    ),
    ("out[i] = dt.exp(x[i], 2)", "exp expects 1 argument", "out[i] = dt.exp(x[i], 2)"),
    ("out[i] = 1 // 0", "1 // 0: ", "out[i] = 1 // 0"),
    ("y = 1\ny //= 0", "y //= 0: ", "y //= 0"),
    ("out[i] = round(x)", "round(x): expected one number", "out[i] = round(x)"),
    ("out[i] = x.T[i]", "but not T", "out[i] = x.T[i]"),
    ("out[i] = dt.exp", "only numbers can be stored", "out[i] = dt.exp"),
    ("out[i] = x[i] & 1.5", "integers, got float64", "out[i] = x[i] & 1.5"),
    ("a, b = i", "write to a name", "a, b = i"),
    ("for k in dt.grid(x[0]):\n    out[i] = 1.0", "must be integers", "for k in dt.grid(x[0]):"),
    ("for k in dt.grid(3):\n    c = c + 1", "are independent", "for k in dt.grid(3):"),
]


@pytest.mark.parametrize(
    ("body", "what", "line"), BODIES, ids=[b[0].split("\n")[0] for b in BODIES]
)
def test_unsupported_syntax_is_named_with_its_line(
    tmp_path: Any, body: str, what: str, line: str
) -> None:
    path = tmp_path / "kernels_of_mine.py"
    inner = "\n".join("        " + s for s in body.split("\n"))
    path.write_text(
        "import dovetail as dt\n@dt.kernel\ndef mine(out: dt.Out, x: dt.In, n: int, c: float):\n"
        f"    for i in dt.grid(len(out)):\n{inner}\n"
    )
    space: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), space)
    x = dt.asarray(X, device="reference")
    with pytest.raises((dt.KernelError, dt.DTypeError)) as caught:
        space["mine"](dt.zeros_like(x), x, 3, 0.5)
    said = str(caught.value)
    assert said.startswith("mine: ")
    assert what in said
    number = 1 + path.read_text().split("\n").index("        " + line)
    assert said.endswith(f'\n  File "{path}", line {number}\n    {line}'), said


def test_statement_outside_of_a_grid_raises() -> None:
    @dt.kernel
    def nothing(out: dt.Out):
        pass

    @dt.kernel
    def other(out: dt.Out):
        for i in range(3):
            out[i] = 1.0

    @dt.kernel
    def early(out: dt.Out):
        out[0] = 1.0
        for i in dt.grid(3):
            out[i] = 1.0

    @dt.kernel
    def data(out: dt.Out, x: dt.In):
        n = x[0]
        for i in dt.grid(int(n)):
            out[i] = 1.0

    @dt.kernel
    def idle(out: dt.Out):
        for i in dt.grid(3):
            y = i + 1  # noqa: F841

    assert shows(refused(nothing, X), "a loop over its points", "def nothing(out: dt.Out):")
    assert shows(refused(other, X), "a loop at the top", "for i in range(3):")
    assert shows(refused(early, X), "move `out[0] = 1.0` into a loop", "out[0] = 1.0")
    assert shows(refused(data, X, X), "known before the launch", "for i in dt.grid(int(n)):")
    assert shows(refused(idle, X), "writes none", "for i in dt.grid(3):")


def test_undeclared_parameters_raise() -> None:
    def plain(out: dt.Out, x):
        pass

    with pytest.raises(dt.KernelError, match="x must be annotated"):
        dt.kernel(plain)

    with pytest.raises(dt.KernelError, match="x must be annotated"):

        @dt.kernel
        def texts(out: dt.Out, x: str):
            pass

    for declared in ([float], X):  # neither is hashable, and comparing X gives no truth value
        plain.__annotations__ = {"out": dt.Out, "x": declared}
        with pytest.raises(dt.KernelError, match="x must be annotated"):
            dt.kernel(plain)

    with pytest.raises(dt.KernelError, match="a kernel must write"):

        @dt.kernel
        def reads(x: dt.In):
            pass

    with pytest.raises(dt.KernelError, match="must be a function defined with def"):
        dt.kernel(lambda out: None)
    with pytest.raises(dt.ArgumentTypeError):
        dt.kernel(3)  # type: ignore[call-overload]
    with pytest.raises(dt.KernelError, match="is not available; define it in a file"):
        space: dict[str, Any] = {"dt": dt}
        exec("def f(out: dt.Out):\n    pass", space)
        dt.kernel(space["f"])


@dt.kernel
def scaled(out: dt.Out, x: dt.In, c: float):
    for i in dt.grid(len(out)):
        out[i] = x[i] * c


def test_wrong_arguments_are_named() -> None:
    x = dt.asarray(X, device="reference")
    out = dt.zeros_like(x)
    scaled(out, c=2, x=x)
    assert out.tolist() == (X * 2).tolist()
    for args, named, kind, what in [
        ((out, x), {}, dt.ArgumentTypeError, "each of .out, x, c. once"),
        ((out, x, 1.0), {"c": 2.0}, dt.ArgumentTypeError, "once"),
        ((out, x, 1.0, 2.0), {}, dt.ArgumentTypeError, "once"),
        ((out, x, "1"), {}, dt.ArgumentTypeError, "c must be a float, got str"),
        ((out, x, True), {}, dt.ArgumentTypeError, "c must be a float, got bool"),
        ((out, X, 1.0), {}, dt.ArgumentTypeError, "x must be a tensor, got ndarray"),
    ]:
        with pytest.raises(kind, match=what):
            scaled(*args, **named)
    with pytest.raises(dt.ReadOnlyError, match="broadcast view"):
        scaled(dt.broadcast_to(x[:1], (6,)), x, 1.0)
    with pytest.raises(dt.LayoutError):
        scaled(out, x.to_sparse(), 1.0)

    @dt.kernel
    def both(a: dt.Out, b: dt.Out):
        for i in dt.grid(len(a)):
            a[i] = 1.0
            b[i] = 2.0

    with pytest.raises(dt.ReadOnlyError, match="a and b are both written and share memory"):
        both(x[1:], x[:-1])


def test_operands_on_two_devices_raise(device: dt.Device) -> None:
    if str(device) == "reference":
        pytest.skip("the reference is the device of both operands; the case cpu tests two")
    with pytest.raises(dt.DeviceError, match="x is on reference and out on "):
        scaled(dt.zeros(3), dt.zeros(3, device="reference"), 1.0)


def test_operand_that_requires_a_gradient_raises() -> None:
    x = dt.ones(3, device="reference").requires_grad_()
    out = dt.zeros(3, device="reference")
    with pytest.raises(dt.GradientError, match="x requires a gradient, but a kernel has none"):
        scaled(out, x, 1.0)
    with dt.no_grad():
        scaled(out, x, 2.0)
    assert out.tolist() == [2, 2, 2]
    with pytest.raises(dt.GradientError, match="out requires a gradient"):
        scaled(x[:2], out[:2], 1.0)


# --- out of range ---------------------------------------------------------------------------------


def body(out: dt.Out, x: dt.In, shift: int):
    for i in dt.grid(len(out)):
        out[i] = x[i + shift]


def sums(out: dt.Out, x: dt.In, shift: int):
    for i in dt.grid(len(out)):
        out[i] = sum(x[k + shift] for k in range(len(x)))


def writes(out: dt.Out, x: dt.In, shift: int):
    for i in dt.grid(len(x)):
        if x[i] > 4:
            out[i + shift] = x[i]


def rounds(out: dt.Out, x: dt.In, shift: int):
    for i in dt.grid(len(out)):
        for k in range(len(x)):
            if k > 3:
                out[i] = x[k + shift]


@pytest.mark.parametrize("f", [body, sums, writes, rounds])
@pytest.mark.parametrize("shift", [1, -7])
def test_index_out_of_range_raises(device: dt.Device, f: Any, shift: int) -> None:
    k = dt.kernel(f) if str(device) == "reference" else dt.kernel(debug=True)(f)
    x, out = dt.asarray(X), dt.zeros(6, dtype=dt.float64)
    k(out, x, 0)
    dt.synchronize()
    with pytest.raises(dt.OutOfRangeError) as caught:
        k(out, x, shift)
    said = str(caught.value)
    text = {"writes": "out[i + shift]", "body": "x[i + shift]"}.get(f.__name__, "x[k + shift]")
    assert re.search(
        rf"{f.__name__}, `.*` \(.*test_bad_kernels.py:\d+\): {re.escape(text)}: ", said
    )
    assert re.search(
        r": (6|-\d) is out of range for axis 0 of size 6 \(requested at .*:\d+\)$", said
    )
    k(out, x, 0)  # nothing is left of it
    assert out.tolist()[5] in (5.0, 15.0)


def here(x, i):
    return x[i]


def beside(x, i):
    return x[i + 1] + x[i + 2]


def test_each_inlined_access_has_its_own_error_cell() -> None:
    """Syntax trees of inlined functions are parsed again for each call, at recycled addresses."""

    @dt.kernel(debug=True)
    def unrolled(out: dt.Out, x: dt.In):
        for i in dt.grid(len(out)):
            total = 0.0
            for _ in (0, 1, 2, 3, 4, 5, 6, 7):
                total += here(x, i) + beside(x, i)
            out[i] = total

    out, x = dt.zeros(3, device="reference"), dt.zeros(4, device="reference")
    parameters = unrolled.text(out, x).split(")")[0]
    assert parameters.count(": w i64") == 1 + 8 * 3


def test_index_out_of_range_raises_when_captured(device: dt.Device) -> None:
    k = dt.kernel(debug=True)(body)

    @dt.jit
    def f(x: dt.Tensor, n: int) -> dt.Tensor:
        out = dt.zeros(4, dtype=dt.float64)
        k(out, x, n)
        return out

    x = dt.asarray(X)
    assert f(x, 1).tolist() == f(x, 1).tolist() == [1, 2, 3, 4]
    for _ in range(2):
        with pytest.raises(dt.OutOfRangeError, match=r"body, .*6 is out of range"):
            f(x, 3)


def test_unreached_access_out_of_range_does_not_raise(device: dt.Device) -> None:
    @dt.kernel(debug=True)
    def guarded(out: dt.Out, x: dt.In, none: dt.In):
        for i in dt.grid(len(out)):
            left = x[i - 1] if i > 0 else 0.0
            if i + 1 < len(x) and x[i + 1] > 0:
                left += x[i + 1]
            for k in range(len(none)):
                left += none[k] + none[0]
            if i > 100:
                left += none[i]
            out[i] = left

    out = dt.zeros(6, dtype=dt.float64)
    guarded(out, dt.asarray(X), dt.zeros(0, dtype=dt.float64))
    assert out.tolist() == [1, 2, 4, 6, 8, 4]


def test_access_to_an_empty_axis_raises(device: dt.Device) -> None:
    k = dt.kernel(debug=True)(body)
    with pytest.raises(dt.OutOfRangeError, match="out of range for axis 0 of size 0"):
        k(dt.zeros(3), dt.zeros(0), 0)


# --- races ----------------------------------------------------------------------------------------


def test_two_points_that_write_to_one_element_raise(device: dt.Device) -> None:
    @dt.kernel(debug=True)
    def folded(out: dt.Out, x: dt.In, n: int):
        for _, j in dt.grid(2, len(x)):
            if x[j] > 0:
                for k in range(1):
                    out[1, (j + k) % n] = x[j]

    x, out = dt.asarray(X[1:]), dt.zeros((2, 5), dtype=dt.float64)
    for n in (5, 3):
        said = refused(folded, out, x, n)
        assert shows(said, "both write to out[1, 0]", "out[1, (j + k) % n] = x[j]"), said
    said = refused(folded, out[::-1, ::-1], x, 5)
    assert "folded: (0, 4) and (1, 4) of the grid both write to out[1, 4]" in said
    assert out.tolist() == [[0] * 5] * 2

    @dt.kernel(debug=True)
    def apart(out: dt.InOut, count: dt.InOut, x: dt.In):
        for i in dt.grid(len(x)):
            for _ in range(3):  # one point may write twice
                out[0, i] += x[i]
            dt.atomic_add(count, 0, 1)  # many may add
        for i in dt.grid(len(x)):
            out[1, i] = out[0, len(x) - 1 - i]

    count = dt.zeros(1, dtype=dt.int32)
    out = dt.zeros((2, 5), dtype=dt.float64)
    apart(out[:, ::-1], count, x)
    assert count.tolist() == [5] and out.tolist() == [[15, 12, 9, 6, 3], [3, 6, 9, 12, 15]]


def test_argument_given_twice_to_an_inlined_function_raises() -> None:
    def scaled(a: float, b: float = 2.0) -> float:
        return a * b

    @dt.kernel
    def k(out: dt.Out, x: dt.In) -> None:
        for i in dt.grid(len(out)):
            out[i] = scaled(x[i], a=x[i])  # type: ignore[misc]

    x = dt.asarray(X, device="reference")
    with pytest.raises(dt.KernelError, match="scaled expects each of"):
        k(dt.zeros_like(x), x)
