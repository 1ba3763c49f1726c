"""Wrong calls of network packages: `dt.nn`, `dt.optim`, `dt.distributions`, `dt.data` and others.

A wrong call is a right one with some of its arguments replaced. `network_calls.txt` has a right
call of each public function, constructor and method; `bad_arguments` judges their outcome.
"""

from __future__ import annotations

import ast
import inspect
import random
import sys
from collections.abc import Iterator
from functools import cache
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import bad_arguments as bad
import dovetail as dt

SPACES = (
    "nn", "nn.functional", "nn.init", "nn.utils", "nn.utils.rnn", "optim", "optim.lr_scheduler",
    "optim.swa_utils", "distributions", "distributions.transforms", "distributions.constraints",
    "data", "checkpoint", "onnx", "tensorboard", "func",
)  # fmt: skip
LEFT_OUT = {
    "nn.Module", "nn.RNNBase", "nn.RNNCellBase", "optim.Optimizer", "distributions.Distribution",
    "distributions.ExponentialFamily", "distributions.Transform", "data.Dataset",
    "data.IterableDataset", "data.Sampler", "distributions.transforms.Transform",
    "distributions.constraints.Constraint",  # base classes without a callable
    "distributions.register_kl", "distributions.ConstraintRegistry",  # would keep its argument
    "distributions.constraints.dependent_property", "data.WorkerError", "data.WorkerInfo",
    "data.get_worker_info", "optim.lr_scheduler.LRScheduler",
}  # fmt: skip
CALLS = Path(__file__).with_name("network_calls.txt")


def _lines() -> Iterator[str]:
    for line in CALLS.read_text().splitlines():
        yield line
        dotted = line.split("(")[0]
        if dotted in _DISTRIBUTIONS:
            yield from (f"{line}.{method}" for method in _METHODS)
        elif dotted.startswith("distributions.") and dotted.endswith("Transform"):
            made = line[: line.index(")(") + 1]
            yield from (f"{made}.{method}" for method in _OF_TRANSFORMS)


_METHODS = (
    "log_prob(value=dt.full(3, 0.5))", "cdf(value=dt.full(3, 0.5))", "icdf(value=dt.full(3, 0.5))",
    "sample(sample_shape=(2,), generator=None)", "rsample(sample_shape=(2,), generator=None)",
    "expand(batch_shape=(2, 3))", "enumerate_support(expand=True)", "sample_n(n=2)",
)  # fmt: skip
_OF_TRANSFORMS = (
    "inv(dt.ones(3))", "log_abs_det_jacobian(x=dt.ones(3), y=dt.ones(3))",
    "forward_shape(shape=(3,))", "inverse_shape(shape=(3,))", "with_cache(cache_size=1)",
)  # fmt: skip
_DISTRIBUTIONS = {
    f"distributions.{n}" for n in dt.distributions.__all__
    if isinstance(c := getattr(dt.distributions, n), type)
    and issubclass(c, dt.distributions.Distribution)
}  # fmt: skip


# --- operands of right calls
# -----------------------------------------------------------------------


def with_gradients() -> list[dt.Tensor]:
    x = dt.ones(3).requires_grad_()
    x.grad = dt.ones(3)
    return [x]


def two_schedules() -> tuple[Any, list[Any]]:
    optimizer = dt.optim.SGD([dt.ones(3).requires_grad_()], lr=0.1)
    kinds = dt.optim.lr_scheduler
    return optimizer, [kinds.ExponentialLR(optimizer, 0.9), kinds.StepLR(optimizer, 2)]


def a_checkpoint() -> str:
    dt.checkpoint.save("made.safetensors", model=dt.nn.Linear(2, 2), a=1)
    return "made.safetensors"


def a_model_file() -> str:
    dt.onnx.export(dt.nn.Linear(3, 2), (dt.ones((1, 3)),), "made.onnx", input_names=["x"])
    return "made.onnx"


def use(made: object) -> None:
    """Use the constructed object, so that arguments without a check at construction are reached."""
    if isinstance(made, dt.optim.Optimizer):
        for group in made.param_groups:
            for p in group["params"]:
                p.grad = dt.ones_like(p)
        made.step(*([lambda: dt.asarray(1.0)] if isinstance(made, dt.optim.LBFGS) else []))
    elif isinstance(made, dt.optim.lr_scheduler.LRScheduler):
        metric = [0.5] if isinstance(made, dt.optim.lr_scheduler.ReduceLROnPlateau) else []
        for _ in range(3):
            made.optimizer.step()
            made.step(*metric)
    elif isinstance(made, dt.distributions.Distribution):
        x = made.sample((2,))
        dt.evaluate(x, made.log_prob(x))
    elif isinstance(made, dt.nn.Module):
        repr(made)


SPACE = {
    **bad.SPACE, "with_gradients": with_gradients, "two_schedules": two_schedules,
    "a_checkpoint": a_checkpoint, "a_model_file": a_model_file,
}  # fmt: skip

# Exceptions of dicts and PyTorch's modules, as the docstrings of these methods say.
DOCUMENTED = {
    "pop": KeyError, "get_submodule": AttributeError, "get_buffer": AttributeError,
    "get_parameter": AttributeError, "set_submodule": AttributeError,
}  # fmt: skip

# --- calls ---------------------------------------------------------------------------------------

NUMBERS = """0 | -1 | 0.0 | -0.5 | 2.0 | 1e308 | 5e-324 | 1e-300 | 2**70 | -(2**70) | 10**400 | True
1 | 3 | (1, 2) | (2, 2, 2, 2) | "same" | "sum" | (0.0, 2.0) | [0.5, "a"]
""".strip().replace("\n", " | ").split(" | ")  # fmt: skip
HALVES = ["dt.ones((2, 4, 6), dtype=dt.float16)", "dt.ones((2, 4, 6), dtype=dt.complex64)"]


class Call(NamedTuple):
    """A right call: its text, and the calls within it whose arguments are replaced."""

    text: str
    name: str
    own: bool  # whether errors have to name it

    def tree(self) -> ast.Expression:
        return ast.parse(f"dt.{self.text}", mode="eval")


@cache
def right() -> tuple[Call, ...]:
    """Return one or several right calls of each public function, constructor and method."""
    made = []
    for line in _lines():
        dotted = line.split("(")[0]
        space, _, name = dotted.rpartition(".")
        own = space.startswith(("nn.functional", "nn.init", "nn.utils")) and line.count(")(") == 0
        made.append(Call(line, name, own and name != "PackedSequence"))
    return tuple(made)


def _chain(node: ast.expr) -> list[ast.Call]:
    """Return the calls whose arguments can be replaced, the last one first."""
    assert isinstance(node, ast.Call)
    return [node, node.func] if isinstance(node.func, ast.Call) else [node]


def _optional(call: ast.Call) -> list[str]:
    """Return the names of a call's optional parameters without an argument."""
    try:
        function = eval(ast.unparse(call.func), dict(SPACE))
        known = inspect.signature(function).parameters.values()
    except Exception:
        return []
    given = {k.arg for k in call.keywords}
    return [p.name for p in known if p.kind is not p.POSITIONAL_ONLY and p.name not in given
            and not p.name.startswith("_") and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)][
                len(call.args):]  # fmt: skip


def _wrong(rng: random.Random) -> ast.expr:
    luck = rng.random()
    pool = (
        NUMBERS if luck < 0.35 else bad.WRONG if luck < 0.75 else bad.TENSORS + HALVES
        if luck < 0.9 else bad.OTHERS
    )  # fmt: skip
    return ast.parse(f"({rng.choice(pool)})", mode="eval").body


def wrong(call: Call, rng: random.Random) -> str:
    """Return a right call with some arguments replaced, omitted, added or misnamed."""
    tree = call.tree()
    node = rng.choice(_chain(tree.body))
    luck = rng.random()
    if luck < 0.06 and node.keywords:
        node.keywords.pop(rng.randrange(len(node.keywords)))
    elif luck < 0.10:
        node.keywords.append(ast.keyword("nonsense", ast.Constant(1)))
    elif luck < 0.13:
        node.args.append(_wrong(rng))
    elif luck < 0.30 and (names := _optional(node)):
        node.keywords.append(ast.keyword(rng.choice(names), _wrong(rng)))
    else:
        for _ in range(rng.choice((1, 1, 2))):
            n = len(node.args) + len(node.keywords)
            if not n:
                node.args.append(_wrong(rng))
                continue
            i = rng.randrange(n)
            if i < len(node.args):
                node.args[i] = _wrong(rng)
            else:
                node.keywords[i - len(node.args)].value = _wrong(rng)
    return ast.unparse(tree)


def calls(seed: int, count: int) -> Iterator[tuple[str, bad.Target]]:
    """Yield wrong calls with their targets."""
    rng = random.Random(seed)
    for _ in range(count):
        call = rng.choice(right())
        names = frozenset({call.name.rstrip("_") if call.own else ""})
        promised = DOCUMENTED.get(call.text.rpartition(".")[2].split("(")[0])
        raises = (promised,) if promised else ()
        yield wrong(call, rng), bad.Target(call.text, (), names, raises=raises)


def trouble(seed: int, count: int) -> list[str]:
    """Return the failed calls, each with its error."""
    return bad.trouble(calls(seed, count), space=SPACE, use=use)


def public() -> set[str]:
    """Return the dotted names of the callables in the network packages."""
    found = set()
    for space in SPACES:
        package = attrgetter(space)(dt)
        for name in package.__all__:
            member = getattr(package, name)
            error = isinstance(member, type) and issubclass(member, Exception)
            if callable(member) and not isinstance(member, ModuleType) and not error:
                found.add(f"{space}.{name}")
    return found - LEFT_OUT


if __name__ == "__main__":
    bad.main(*sys.argv[1:], make=calls, space=SPACE, use=use)
