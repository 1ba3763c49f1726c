"""Run one program in many ways and compare it with Python's own loops in `dt.eager()`."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple

import dovetail as dt
from control_flow_in_python import PYTHON, one_by_one
from dovetail.capture.pytree import flatten
from equivalent_programs import Program

__all__ = ["PYTHONS", "WAYS", "differences", "load", "shrunk", "stacked"]

Function = Callable[..., Any]
EXAMPLES = 3

# Errors that docs/jit.md and docs/transforms.md document; a run in Python does not raise them.
ALLOWED = {
    "asks for a value": r"CaptureError: dt.jit: .*",
    "no gradient of a loop of unknown length": r"GradientError: .*(unknown length|must be ints)",
    "no gradient of cond": r"GradientError: .*cannot flow through it in a captured function",
    "write to a leaf in a body": r"GradientError: (\w+: )?\w+ in place: .* is a leaf that requires",
    "gradient of a captured gradient": r"GradientError: backward: dt.jit of .* so its",
    "write to what a loop with gradients reads": r"GradientError: backward: a loop saved tensor",
    "not in a file": r"CaptureError: (save_function: |\S+, from a file: the arguments must be of)",
}
# Errors of `cond`: a captured function and `vmap` run both branches.
ALLOWED_OF_CONDS = {
    "error of another branch": r"ReadOnlyError: .* cannot write to a broadcast view",
}
# Errors of branches and iterations in `vmap`, which run for all examples if they run for one.
ALLOWED_OF_BRANCHES = {
    "write of a branch": r"GradientError: backward: .* overwrote it in place",
    **ALLOWED_OF_CONDS,
}
DEFERRED = r"(OutOfRangeError|LinAlgError): "  # errors that are raised when results are needed


class Way(NamedTuple):
    """A way of running programs: `over` wraps the function that takes the result of `given`."""

    group: str
    over: Callable[[Function], Function]
    is_eager: bool = False


def identity(f: Function) -> Function:
    return f


def gradient(f: Function) -> Function:
    def total(x: Any, *others: Any) -> Any:
        leaves = flatten(f(x * 1, *others)).leaves
        return sum((t * t).sum() for t in leaves if dt.isdtype(t.dtype, "real floating"))

    return dt.func.grad(total)


def each(f: Function) -> Function:
    def call(xs: Any, ys: Any, *others: Any) -> Any:
        return one_by_one(lambda x, y: f(x, y, *others), (xs, ys))

    return call


def batched(f: Function) -> Function:
    return dt.vmap(f, in_axes=(0, 0, None, None, None))


def jit(f: Function) -> Function:
    return dt.jit(f, static_argnames="n", fullgraph=True)


def jit_of(f: Function) -> Function:
    return jit(lambda x, y, d, rate, n: f(x, y, d, rate, n))


def through_a_file(f: Function) -> Function:
    """Return a function that is captured in its first two calls, then saved and loaded."""
    captured, calls = jit(f), Counter[str]()
    loaded: list[Function] = []

    def call(*args: Any) -> Any:
        calls["all"] += 1
        if calls["all"] <= 2:
            return captured(*args)
        if not loaded:
            with tempfile.TemporaryDirectory() as folder:
                dt.save_function(captured, Path(folder) / "f")  # type: ignore[arg-type]
                loaded.append(dt.load_function(Path(folder) / "f"))
        return loaded[0](*args)

    return call


WAYS = {
    "plain": Way("calls", identity),
    "eager": Way("calls", identity, is_eager=True),
    "jit": Way("calls", jit),
    "saved": Way("saved", through_a_file),
    "vmap": Way("examples", batched),
    "jit of vmap": Way("examples", lambda f: jit_of(batched(f))),
    "vmap of jit": Way("examples", lambda f: batched(jit(f))),
    "grad": Way("gradients", gradient),
    "jit of grad": Way("gradients", lambda f: jit_of(gradient(f))),
    "grad of jit": Way("gradients", lambda f: gradient(jit(f))),
    "vmap of grad": Way("gradients of examples", lambda f: batched(gradient(f))),
    "jit of vmap of grad": Way("gradients of examples", lambda f: jit_of(batched(gradient(f)))),
}
PYTHONS = {
    "calls": identity,
    "saved": identity,
    "examples": each,
    "gradients": gradient,
    "gradients of examples": lambda f: each(gradient(f)),
}


def values(made: Any) -> list[Any]:
    """Return the values of the tensors in containers, to be compared bit for bit."""
    return [(x.dtype.name, x.shape, repr(x.tolist())) for x in flatten(made).leaves
            if isinstance(x, dt.Tensor)]  # fmt: skip


def message(error: BaseException) -> str:
    """Return the type and text of an error, without the prefix of captures and without lines."""
    text = re.sub(r"^((dt\.jit of \S+|fori_loop|while_loop|scan|cond): )+", "", str(error))
    text = text.replace("the matrix at [0] of the batch", "the matrix")
    text = re.sub(r" ?\((asked for )?(at|in|by) .*", "", text, flags=re.DOTALL)
    return f"{type(error).__name__}: {text}"


def unsigned(seen: list[Any]) -> str:
    """Return the outcome with zeros without a sign, as a branch of examples may give them."""
    return re.sub(r"-0\.0(?!\d)", "0.0", repr(seen))


def load(program: Program, c: Any) -> tuple[Any, ...]:
    scope: dict[str, Any] = {"__name__": __name__}
    exec(compile(program.source, "<program>", "exec"), scope)
    return scope["make"](c)  # type: ignore[no-any-return]


def groups_of(program: Program, seed: int | None) -> list[str]:
    """Return the groups of applicable ways; with a seed, calls and one other group."""
    groups = ["saved", "gradients"]
    if not program.writes_outside and "random" not in program.kinds:
        groups += ["examples", "gradients of examples"]
    return ["calls", *(groups if seed is None else [groups[seed % len(groups)]])]


def run(program: Program, group: str, c: Any, over: Callable[[Function], Function],
        is_eager: bool) -> list[Any]:  # fmt: skip
    """Return the results, arguments and closure after each call; an error ends it."""
    seen: list[Any] = []
    with ExitStack() as stack:
        stack.callback(drop_errors)
        stack.enter_context(dt.vendor_products(False))
        if is_eager:
            stack.enter_context(dt.eager())
        f, change, call, state = load(program, c)
        g = over(f)
        for k in range(1 if group == "saved" else program.calls):
            for repeat in range(4 if group == "saved" else 2):
                try:
                    if repeat == 0:
                        change(k)
                    args = call(k)
                    if "examples" in group:
                        args = stacked([args, *[call((k + j) % 4) for j in range(1, EXAMPLES)]])
                    made = g(*args)
                    seen.append([values(made), values(args)])
                    if group == "calls":  # results may be views of arguments, or of the closure
                        for t in flatten(made).leaves:
                            t.detach().add_(1)
                        kept = [w.grad for w in state() if w.grad is not None]
                        seen[-1] += [values(args), values([*state(), *kept])]
                except Exception as error:
                    return [*seen, message(error)]
    return seen


def drop_errors() -> None:
    """Consume the error of an index that no result has raised; the next test would get it."""
    with suppress(dt.OutOfRangeError):
        dt.synchronize()


def stacked(calls: list[Any]) -> Any:
    columns = [dt.stack([args[i].detach() for args in calls]) for i in range(2)]
    return (*(x.copy() for x in columns), *calls[0][2:])


def nameless(error: object) -> object:
    """Return an error of a backward pass without the op that a captured function cannot name.

    A captured loop is one op, and both branches of a captured `cond` write.
    """
    if not isinstance(error, str):
        return error
    error = re.sub(r"(?<=^GradientError: backward: what )[\w ]+(?= kept for)", "it", error)
    return re.sub(r"(?<=^GradientError: backward: )(.*, and )\w+(?= overwrote it)", r"\1it", error)


def differences(
    program: Program, counts: Counter[str], ways: Iterable[str] = WAYS, seed: int | None = None
) -> str:
    """Return the first difference between ways of running a program, as text."""
    for group in groups_of(program, seed):
        chosen = [name for name in ways if WAYS[name].group == group]
        want = run(program, group, PYTHON, PYTHONS[group], True) if chosen else []
        runs_more = "examples" in group and re.search(r"c\.(cond|while_loop)\(", program.source)
        any_sign = runs_more and group == "gradients of examples"
        for name in chosen:
            way = WAYS[name]
            made = run(program, group, dt, way.over, way.is_eager)
            counts[f"runs of {name}"] += 1
            if made == want or (any_sign and unsigned(made) == unsigned(want)):
                continue
            is_lazy = not way.is_eager
            n = len(want) - 1
            is_skipped = is_lazy and type(want[n]) is str and made[:n] == want[:n]
            if is_skipped and type(made[n]) is list:
                counts["no error of a value that nothing needs"] += 1
                continue
            if isinstance(made[-1], str):
                if [*made[:-1], nameless(made[-1])] == [*want[:-1], nameless(want[-1])]:
                    counts["another op is named in an error"] += 1
                    continue
                allowed = ALLOWED | (ALLOWED_OF_BRANCHES if runs_more else {})
                if name not in ("plain", "eager", "grad") and "c.cond(" in program.source:
                    allowed |= ALLOWED_OF_CONDS
                kinds = [k for k, pattern in allowed.items() if re.match(pattern, made[-1])]
                if isinstance(want[-1], str) and re.match(DEFERRED, want[-1]):
                    kinds.append("an error before one that is deferred")
                if kinds and made[:-1] == want[: len(made) - 1]:
                    counts[kinds[0]] += 1
                    continue
            pairs = zip(made, want, strict=False)
            k = next((k for k, (a, b) in enumerate(pairs) if a != b), min(len(made), len(want)))
            return f"{name}: in step {k} {made[k : k + 1]}, not {want[k : k + 1]}"
    return ""


def shrunk(program: Program, difference: str) -> Program:
    """Remove the statements that are not required for the difference."""
    lines = program.source.split("\n")

    def kind(text: str) -> tuple[str, ...]:
        """Return the way, and whether it and Python give values or errors."""
        made, _, want = text.partition("], not [")
        return text.partition(":")[0], made.partition("step")[2][3:6], want[:3]

    for k in reversed(range(len(lines))):
        blank = len(lines[k]) - len(lines[k].lstrip())
        end = k + 1
        while end < len(lines) and len(lines[end]) - len(lines[end].lstrip()) > blank:
            end += 1
        shorter = program._replace(source="\n".join([*lines[:k], *lines[end:]]))
        with suppress(Exception):  # no statement remains
            if kind(differences(shorter, Counter(), [kind(difference)[0]])) == kind(difference):
                program, lines = shorter, shorter.source.split("\n")
    return program
