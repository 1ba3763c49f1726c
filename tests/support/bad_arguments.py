"""Random calls of every public function with partly wrong arguments, and a judge of their outcome.

A call is a line of Python, so a failure can be pasted into a session. The same seed gives the same
calls. Bad sizes must raise an error or cost nothing, so no call here may take long or much memory.
"""

from __future__ import annotations

import inspect
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import dovetail as dt
import numpy as np

MEMORY = 64 << 20  # bytes that a device may reserve during the calls
ADDRESSES = 8 << 30  # bytes that a process of calls may map
SECONDS = 20.0  # time limit of one call: many times the slowest compilation
SMALL = 1 << 16  # bytes up to which results are computed

# --- values, as Python text ----------------------------------------------------------------------

TENSORS = """
dt.ones((2, 3)) | dt.ones(3) | dt.ones(()) | dt.ones(0) | dt.ones((2, 0, 3)) | dt.ones((3, 3))
dt.arange(6).reshape(2, 3) | dt.arange(4) | dt.asarray([[1, 2], [3, 4]], dtype=dt.uint8)
dt.ones(3, dtype=dt.bool) | dt.zeros((2, 3), dtype=dt.bool) | dt.asarray(2) | dt.asarray(True)
dt.ones(3, dtype=dt.uint64) | dt.ones((2, 3), dtype=dt.float16) | dt.ones(3, dtype=dt.bfloat16)
dt.ones((2, 3), dtype=dt.float64) | dt.broadcast_to(dt.ones(1), (4, 3)) | dt.ones((2, 3)).T
dt.asarray([float("nan"), 1.0, float("inf")]) | dt.ones((1, 2, 1, 3)) | dt.ones(3).requires_grad_()
dt.arange(3) - 5 | dt.ones((1,) * 64)
""".replace("\n", " | ").split(" | ")  # fmt: skip
OTHERS = """
dt.ones((2, 3)).to_sparse() | dt.ones(3).to_sparse() | dt.ones((2, 3)).to_sparse(1)
dt.ones((2, 3), device="reference") | dt.arange(3, device="reference")
dt.sparse_coo_tensor(np.zeros((2, 0), dtype=int), [], (2, 3))
dt.ones((2, 3)).to_sparse_csr() | dt.ones((2, 3)).to_sparse_csc()
dt.ones((2, 4)).to_sparse_bsr((2, 2))
""".strip().replace("\n", " | ").split(" | ")  # fmt: skip
WRONG = """
None | "" | "abc" | "axis" | {} | {"a": 1} | set() | {1} | object() | 1.5 | float("nan")
float("inf") | -float("inf") | -1 | 2**31 | 2**63 | 2**64 | -(2**63) - 1 | 10**400 | -(10**400)
10**5000 | True | False | 1j | b"ab" | bytearray(b"ab") | [] | () | [[1, 2], [3]] | [1, [2]]
["a"] | [None] | [dt.ones(2), 3] | [[1.5, 2], [3, 4]] | (0, 0) | (-1, 7) | (1, 2, 3, 4, 5, 6)
(2**40, 2**40) | (1.5,) | ("a", "b") | (None, 1) | -7 | 7 | 2.7 | 65 * (1,) | [2**63] | [2**70]
np.ones(2) | np.array("a") | np.array([object()]) | np.array(["2020-01-01"], "M8[D]") | np.array(1)
np.array([1, 2], ">i4") | np.float64(2) | np.int64(1) | np.uint8(3) | np.bool_(True)
np.ones((0, 2))
np.array([(1, 2.0)], "i4,f8") | np.datetime64("2020-01-01") | np.str_("a") | np.ones(2, "c16")
slice(None) | slice(None, None, 0) | slice("a") | slice(0, 2**70) | Ellipsis | range(3) | range(0)
dt | dt.float32 | dt.float64 | int | float | str | object | "float32" | "complex64" | dt.complex64
"cpu" | "nosuch" | "cpu:7" | "cpu:" | "CPU" | dt.device("cpu") | lambda: 1 | len | print | iter([1])
NotImplemented | "ij,jk->ik" | "i->" | "->" | "ii" | "...i" | memoryview(b"abcd") | type | Exception
dt.strided | dt.Tensor | float | dt.newaxis | [True] | [0] | [[0]] | "left" | "\\0" | "é"
""".strip().replace("\n", " | ").split(" | ")  # fmt: skip

# Values that a parameter of this name accepts, so that calls get far enough to reach the next one.
RIGHT = {
    "axis": "0 | 1 | -1 | (0, 1) | None | -2 | ()", "dim": "0 | 1 | -1",
    "dtype": 'dt.float32 | dt.int64 | dt.bool | "float64" | None | dt.float16 | int | np.int8',
    "device": 'None | "cpu" | "reference"', "keepdims": "True | False", "k": "0 | 1 | -1",
    "shape": "(2, 3) | 3 | () | (0,) | (3, 2) | (-1,) | (6,)", "n": "0 | 1 | 2",
    "indices": "dt.asarray([0, 1]) | [0] | dt.asarray(0) | np.array([1, 0])",
    "index": "dt.asarray([0, 1]) | dt.asarray([[0, 0, 0]]) | [0]",
    "out": "None | dt.ones((2, 3)) | dt.ones(())", "repeats": "2 | [1, 2] | 0", "decimals": "0 | 1",
    "condition": "dt.ones(3, dtype=dt.bool) | dt.zeros((2, 3), dtype=dt.bool)",
    "arrays": "[dt.ones(3), dt.ones(3)] | (dt.ones((2, 3)),)", "num": "3 | 0",
    "start": "0 | 1.5", "stop": "3 | 4.5", "step": "1 | -1", "sizes": "1 | [1, 1]",
    "low": "0 | 0.0", "high": "5 | 1.0", "seed": "1", "min": "0 | None", "max": "1 | None",
    "axes": "1 | (1, 0) | ([0], [0]) | 0", "subscripts": '"ij,jk->ik" | "ii" | "i->" | "ij->ji"',
    "kind": '"bool" | "numeric" | dt.int8', "indexing": '"xy" | "ij"', "side": '"left" | "right"',
    "function": "dt.exp | dt.sum | (lambda x: x * x)", "correction": "0 | 1",
    "source": "dt.ones(2) | 1.0 | dt.ones((2, 3))", "src": "dt.ones((1, 3)) | 1.0",
    "key": "0 | slice(None) | (0, 1) | None | dt.asarray([0]) | ... | (0, ..., None)",
    "value": "1 | dt.ones(3) | 1.5 | True", "fill_value": "1 | 1.5", "values": "[1.0, 2.0]",
    "nbytes": "None | 1 << 26", "state": "(1, 2)", "size": "(2, 3)", "stride": "(3, 1)",
    "shift": "1 | (1, 1)", "order": "(1, 0)", "copy": "None | True | False", "descending": "True",
    "offset": "0 | 1", "dim1": "0", "dim2": "1", "destination": "1",
    "inputs": "dt.ones(3, dtype=dt.float64).requires_grad_() | [dt.ones(3).requires_grad_()]",
    "outputs": "dt.ones(3).requires_grad_().sum()", "primals": "dt.ones(3)",
    "tangents": "dt.ones(3)",
    "generator": "None | dt.random.default_rng(1)", "stream": "dt.default_stream()",
    "matrix": "scipy_matrix()", "hook": "lambda g: g", "repetitions": "2 | (1, 2)",
    "obj": "[1, 2] | 1.5 | np.ones(3) | [[1], [2]] | dt.ones(3)",
}  # fmt: skip
RIGHT |= {"source": RIGHT["source"] + " | 0", "type": RIGHT["dtype"], "to": RIGHT["dtype"]}


def scipy_matrix() -> Any:
    """Return a sparse matrix of another library."""
    return __import__("scipy.sparse").sparse.coo_array(np.eye(3))


# --- targets --------------------------------------------------------------------------------------

LEFT_OUT = {
    "dt.memory.set_allocator": "any function is an allocator, and the device would keep it",
    "dt.memory.make_allocator": "what devices are opened with",
    "dt.memory.wrap_pointer": "what backends share memory with",
    "dt.autograd.set_gradient": "what backends and layouts write rules with",
}
CLASSES = {"Stream", "Event", "Generator", "set_grad_enabled", "no_grad", "enable_grad", "eager",
           "vendor_products"}  # fmt: skip
# Of tensors: methods for writing layouts, and those that call back their argument.
NO_METHODS = {"mro", "run_rule"}
OPERATORS = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "floor_divide": "//",
    "remainder": "%", "pow": "**", "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^",
    "bitwise_left_shift": "<<", "bitwise_right_shift": ">>", "matmul": "@", "equal": "==",
    "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=",
}  # fmt: skip
BUILT_IN = ("int", "float", "bool", "complex", "len", "abs", "iter", "repr", "str", "hash")
AUGMENTED = {"+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<<", ">>", "@"}


@dataclass(frozen=True)
class Target:
    """Something to call.

    `text` has placeholders {0}, {1}, ... for arguments; `names` are an op's names.
    """

    text: str
    parameters: tuple[inspect.Parameter, ...]
    names: frozenset[str]
    written: bool = False  # whether `text` has all its placeholders, as operators do
    raises: tuple[type[Exception], ...] = ()  # other errors that its docstring promises


def _parameters(function: Any) -> tuple[inspect.Parameter, ...] | None:
    try:
        return tuple(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None


def _names(name: str, function: Any) -> frozenset[str]:
    own = getattr(function, "__name__", name).strip("_")
    own = own.removesuffix("_method").removesuffix("_operator")
    return frozenset({name.strip("_"), own})


def _functions(prefix: str, module: Any, names: list[str]) -> Iterator[Target]:
    for name in names:
        found = getattr(module, name)
        if f"{prefix}.{name}" in LEFT_OUT or isinstance(found, ModuleType) or not callable(found):
            continue
        if isinstance(found, type) and name not in CLASSES:
            continue
        parameters = _parameters(found)
        if parameters is not None:
            yield Target(f"{prefix}.{name}", parameters, _names(name, found))


def _public(module: Any) -> list[str]:
    listed = getattr(module, "__all__", None) or [
        n for n, f in vars(module).items()
        if not n.startswith("_") and getattr(f, "__module__", "") == module.__name__
    ]  # fmt: skip
    return sorted(listed)


def _methods(receivers: list[str], kind: type) -> Iterator[Target]:
    for name in sorted(dir(kind)):
        if name.startswith("_") or name in NO_METHODS or not callable(found := getattr(kind, name)):
            continue
        parameters = _parameters(found)
        if parameters is not None:
            for x in receivers:
                yield Target(f"{x}.{name}", parameters[1:], _names(name, found))


def _parameter(name: str) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY)


def _operators(receivers: list[str]) -> Iterator[Target]:
    for name, sign in OPERATORS.items():
        other = (_parameter("x2"),)
        turned = name.replace("less", "*").replace("greater", "less").replace("*", "greater")
        # Python may swap comparisons, and repeats a list by an object with `__index__`.
        words = frozenset({name, name.removeprefix("bitwise_"), turned, "index"})
        for x in receivers:
            yield Target(f"{x} {sign} ({{0}})", other, words, True)
            yield Target(f"({{0}}) {sign} {x}", other, words, True)
            if sign in AUGMENTED:
                yield Target(f"in_place({x}, {sign!r}, {{0}})", other, words, True)
    key, value = _parameter("key"), _parameter("value")
    index = frozenset({"index", "setitem", "take", "gather"})
    for x in receivers:
        for _ in range(8):
            yield Target(f"{x}[{{0}}]", (key,), index, True)
            yield Target(f"{x}[{{0}}, {{1}}]", (key, key), index, True)
            yield Target(f"{x}.__setitem__({{0}}, {{1}})", (key, value), index, True)
        for word in BUILT_IN:
            yield Target(f"{word}({x})", (), frozenset({word, "item", "index", "abs"}), True)
        if "sparse" not in x:
            yield Target(f"format({x}, {{0}})", (_parameter("spec"),), frozenset({"format"}), True)
        yield Target(f"({{0}}) in {x}", (value,), frozenset({"equal", "bool"}), True)


def in_place(x: Any, sign: str, other: Any) -> Any:
    """Compute `x sign= other`."""
    held = {"x": x, "other": other}
    exec(f"x {sign}= other", held)
    return held["x"]


def targets() -> list[Target]:
    """Return every public callable, repeated by its weight."""
    dense = ["dt.ones((2, 3))", "dt.arange(6).reshape(2, 3)", "dt.ones(3)"]
    sparse = ["dt.ones((2, 3)).to_sparse()", "dt.ones((2, 3)).to_sparse(1)"]
    rows = ["dt.ones((2, 3)).to_sparse_csr()", "dt.ones((2, 3)).to_sparse_bsr((1, 3))"]
    functions = list(_functions("dt", dt, sorted(dt.__all__)))
    for name in ("fft", "linalg", "random", "memory", "autograd", "sparse", "sparse.linalg"):
        module = attrgetter(name)(dt)
        functions += _functions(f"dt.{name}", module, _public(module))
    functions += _functions("dt.__array_namespace_info__()", dt.__array_namespace_info__(), [
        "capabilities", "default_device", "default_dtypes", "devices", "dtypes",
    ])  # fmt: skip
    generator = list(_methods(["dt.random.default_rng(1)"], dt.random.Generator))
    streams = list(_methods(['dt.default_stream("cpu")'], dt.Stream))
    streams += _methods(['dt.Event("cpu")'], dt.Event)
    streams += _methods(["dt.ones(3).storage()"], dt.Storage)
    methods = list(_methods(dense, dt.Tensor)) + list(_methods(sparse, dt.sparse.COO))
    methods += _methods(rows, dt.sparse.CSR)
    operators = list(_operators(dense)) + list(_operators(sparse))
    return [*functions * 4, *generator * 2, *streams, *methods, *operators]


# --- calls ---------------------------------------------------------------------------------------


def _split(text: str) -> list[str]:
    return [part.strip() for part in text.split(" | ")]


RIGHT_VALUES = {name: _split(text) for name, text in RIGHT.items()}
TENSORS = [t.strip() for t in TENSORS if t.strip()]
OTHERS = [t.strip() for t in OTHERS if t.strip()]
WRONG = [t.strip() for t in WRONG if t.strip()]


NO_FUNCTIONS = [t for t in WRONG if not callable(eval(t, {"dt": dt, "np": np}))]


def _argument(p: inspect.Parameter, rng: random.Random) -> str:
    luck = rng.random()
    if p.name in ("function", "hook", "mask_func") and luck > 0.55:
        return rng.choice(NO_FUNCTIONS)  # exceptions of other libraries are theirs
    if luck < 0.55:
        if p.name in RIGHT_VALUES:
            return rng.choice(RIGHT_VALUES[p.name])
        return rng.choice(TENSORS)
    if luck < 0.70:
        return rng.choice(TENSORS)
    return rng.choice(OTHERS if luck < 0.78 else WRONG)


def call(target: Target, rng: random.Random) -> str:
    """Return a call of the target, as Python text."""
    if target.written:
        return target.text.format(*[_argument(p, rng) for p in target.parameters])
    given: list[str] = []
    by_name = False
    for p in target.parameters:
        if p.kind is p.VAR_KEYWORD:
            continue
        if p.kind is p.VAR_POSITIONAL:
            if not by_name:
                given += [_argument(p, rng) for _ in range(rng.randrange(4))]
            by_name = True
            continue
        if p.default is not p.empty and rng.random() < 0.55:
            by_name = True
            continue
        by_name = by_name or p.kind is p.KEYWORD_ONLY
        if by_name and p.kind is p.POSITIONAL_ONLY:
            continue
        text = _argument(p, rng)
        given.append(f"{p.name}={text}" if by_name else text)
    return f"{target.text}({', '.join(given)})"


def calls(seed: int, count: int) -> Iterator[tuple[str, Target]]:
    """Yield calls with their targets."""
    everything, rng = targets(), random.Random(seed)
    for _ in range(count):
        target = rng.choice(everything)
        yield call(target, rng), target


# --- outcomes -------------------------------------------------------------------------------------

SPACE = {"dt": dt, "np": np, "in_place": in_place, "scipy_matrix": scipy_matrix}
# The interpreter's own messages for a call that does not match a function's signature.
SIGNATURE = re.compile(
    r"missing \d+ required|takes .*argument|unexpected keyword|multiple values|"
    r"passed as keyword|positional-only"
)
OURS = tuple(str(Path(m.__file__ or "").parent) + os.sep for m in (dt, dt.sparse, dt.nn))


Calls = Callable[[int, int], Iterator[tuple[str, Target]]]


class Hang(BaseException):
    """Raised if a call takes longer than the limit."""


def _ring(signum: int, frame: FrameType | None) -> None:
    raise Hang


def _frames(error: BaseException) -> list[str]:
    return [f.filename for f in traceback.extract_tb(error.__traceback__)]


def _is_interpreters(error: BaseException) -> bool:
    """Return True if Python rejected the call before any code of dovetail ran.

    That includes a wrong signature, exceptions of a callback, and missing files and modules.
    """
    frames = _frames(error)
    if not any(f.startswith(OURS) for f in frames) or isinstance(error, (OSError, ImportError)):
        return True
    if frames[-1] == "<string>":
        return True
    return isinstance(error, TypeError) and bool(SIGNATURE.search(str(error)))


def _look(made: Any, depth: int = 0) -> None:
    """Compute a small result and format it as text."""
    if isinstance(made, dt.Tensor):
        if made.size * made.itemsize <= SMALL:
            dt.evaluate(made)
            repr(made)
    elif isinstance(made, (tuple, list)) and depth < 3:
        for part in made[:8]:
            _look(part, depth + 1)


def complaint(
    line: str, target: Target, space: dict[str, Any], use: Callable[[Any], object]
) -> str | None:
    """Return what is wrong with the outcome of a call, or None."""
    try:
        made = eval(line, dict(space))
        _look(made)
        use(made)
    except UserWarning:  # dovetail's errors; NumPy and Python have other classes
        return None
    except Hang:
        return f"takes longer than {SECONDS:.0f} s"
    except dt.DovetailError as error:
        if isinstance(error, dt.InternalError):
            return f"InternalError: {str(error)[:200]}"
        return _unnamed(error, target)
    except Exception as error:
        if _is_interpreters(error) or isinstance(error, target.raises):
            return None
        frames = traceback.extract_tb(error.__traceback__)
        where = next(f for f in reversed(frames) if f.filename.startswith(OURS))
        at = f"{Path(where.filename).name}:{where.lineno}"
        return f"foreign {type(error).__name__} from {at}: {str(error)[:160]}"
    return None


def _unnamed(error: dt.DovetailError, target: Target) -> str | None:
    """Return True for errors that need not name an op: missing memory or devices, and
    `__array__`.
    """
    if isinstance(error, (dt.OutOfMemoryError, dt.PluginError)):
        return None
    others = ["no device", "no backend for", "__array__"]
    if isinstance(error, dt.OutOfRangeError):
        others.append("gather")  # raised when the work runs
    if any(name in str(error) for name in (*target.names, *others)):
        return None
    if any(p.name == "function" for p in target.parameters):
        return None  # an exception of the callback
    return f"unnamed {type(error).__name__}: {str(error)[:160]}"


def _restore() -> None:
    """Restore settings that a call may have changed for later ones."""
    dt.set_default_device("cpu")
    dt.set_default_dtype("float32")
    dt.set_grad_enabled(True)
    dt.memory.trace(False)
    for device in ("cpu", "reference"):
        dt.memory.set_limit(device, MEMORY)


def trouble(
    made: Iterable[tuple[str, Target]], note: Callable[[str], object] = str,
    space: dict[str, Any] = SPACE, use: Callable[[Any], object] = id,
) -> list[str]:  # fmt: skip
    """Return the failed calls, each with its error. Warnings count as errors.

    note: called with each call before it runs. use: called with each result.
    """
    found = []
    before = Path.cwd()
    rings = signal.signal(signal.SIGALRM, _ring)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("error")
        os.chdir(folder)
        try:
            for line, target in made:
                note(line)
                _restore()
                signal.setitimer(signal.ITIMER_REAL, SECONDS)
                wrong = complaint(line, target, space, use)
                signal.setitimer(signal.ITIMER_REAL, 0)
                if wrong:
                    found.append(f"{line}\n    {wrong}")
        finally:
            os.chdir(before)
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, rings)
            _restore()
            for device in ("cpu", "reference"):
                dt.memory.set_limit(device, None)
    return found


def in_another_process(
    seed: int, count: int, seconds: float, first: str = "", program: str = __file__
) -> list[str]:
    """Run `trouble` in another process; a crash or a hang is reported with its call.

    `first` is called before all others. program: the module whose `main` makes the calls.
    """
    with tempfile.TemporaryDirectory() as folder:
        last, report = Path(folder, "last"), Path(folder, "report")
        last.write_text("before the first call")
        command = [sys.executable, program, str(seed), str(count), str(last), str(report), first]
        try:
            done = subprocess.run(command, timeout=seconds, capture_output=True, text=True)
            code, said = done.returncode, done.stderr[-2000:]
        except subprocess.TimeoutExpired:
            code, said = "hung", ""
        if code != 0:
            return [f"{last.read_text()}\n    the process ended: {code}; {said}"]
        return [part for part in report.read_text().split("\n\n") if part]


def main(
    seed: str, count: str, last: str, report: str, first: str, make: Calls = calls, **more: Any
) -> None:
    """Make calls in a bounded address space, in the other process."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    before = [(first, Target(first, (), frozenset()))] if first else []
    with open(last, "w") as f:

        def note(line: str) -> None:
            f.seek(0)
            f.truncate()
            f.write(line)
            f.flush()

        found = trouble(chain(before, make(int(seed), int(count))), note, **more)
    Path(report).write_text("\n\n".join(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
