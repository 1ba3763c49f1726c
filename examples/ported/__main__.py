"""Run programs written for PyTorch on dovetail too: only their import lines change.

    python -m examples.ported                       # all programs, results side by side
    python -m examples.ported nanogpt --steps 20
    python -m examples.ported nanogpt --time        # and the time of a training step, one thread

Both libraries start from the same parameters and data: PyTorch's random numbers are recorded and
dovetail's generator returns them. All of dovetail draws from that one generator.
"""

from __future__ import annotations

import argparse
import itertools
import re
import statistics
import subprocess
import sys
import time
from collections import defaultdict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import dovetail as dt
import numpy as np
from dovetail.functions.random import generator

FOLDER = Path(__file__).parent
NAMES = ("nanogpt", "resnet", "vae", "dqn", "diffusion", "graph", "lstm")
LIBRARIES = ("torch", "dovetail.torch")


def port(source: str) -> str:
    """Return a program for PyTorch with the import lines of dovetail."""
    source = re.sub(r"^import torch$", "import dovetail.torch as torch", source, flags=re.MULTILINE)
    return re.sub(r"^(import|from) torch\b", r"\1 dovetail.torch", source, flags=re.MULTILINE)


def load(name: str, library: str) -> ModuleType:
    """Return a program as a module that imports `torch` or `dovetail.torch`."""
    path = FOLDER / f"{name}.py"
    source = path.read_text()
    module = ModuleType(f"{name}_on_{library.replace('.', '_')}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # dataclasses and pickles look it up
    code = source if library == "torch" else port(source)
    exec(compile(code, str(path), "exec"), module.__dict__)
    return module


# --- equal random numbers -------------------------------------------------------------------------

Draws = dict[str, deque[np.ndarray]]  # by kind: uniform, normal, integers, permutation, exponential

KINDS = {
    "uniform_": "uniform", "rand": "uniform", "rand_like": "uniform",
    "normal_": "normal", "randn": "normal", "randn_like": "normal",
    "randint": "integers", "randint_like": "integers", "randperm": "permutation",
}  # fmt: skip


@contextmanager
def recorded_draws() -> Iterator[Draws]:
    """Yield the random numbers that PyTorch draws in the block."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    draws: Draws = defaultdict(deque)

    class Recorder(TorchDispatchMode):
        """A mode that copies the results of random operations."""

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            name = func.overloadpacket.__name__
            if name == "multinomial" and args[1] == 1:  # as PyTorch does it
                noise = torch.empty_like(args[0]).exponential_()
                draws["exponential"].append(noise.float().numpy())
                return (args[0] / noise).argmax(-1, keepdim=True)
            result = func(*args, **(kwargs or {}))
            if (kind := KINDS.get(name)) is not None:
                draws[kind].append(result.detach().numpy().copy())
            return result

    with Recorder():
        yield draws


class Replay(dt.random.Generator):
    """A generator that returns recorded random numbers. Raises: ValueError, IndexError."""

    def __init__(self, draws: Draws) -> None:
        super().__init__(0)
        self.draws = draws

    def next(self, kind: str, shape: Any, dtype: Any, device: Any) -> dt.Tensor:
        """Return the next recorded numbers of a kind, which must have the shape."""
        values = self.draws[kind].popleft()
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        if values.shape != shape:
            raise ValueError(f"{kind}: PyTorch drew shape {values.shape}, dovetail shape {shape}")
        return dt.asarray(values, dtype=dtype, device=device)

    def uniform(  # type: ignore[override]
        self, shape: Any = (), *, low: float = 0.0, high: float = 1.0, dtype: Any = None,
        device: Any = None,
    ) -> dt.Tensor:  # fmt: skip
        """Return recorded numbers, whose bounds were PyTorch's."""
        return self.next("uniform", shape, dtype, device)

    def normal(  # type: ignore[override]
        self, shape: Any = (), *, mean: float = 0.0, std: float = 1.0, dtype: Any = None,
        device: Any = None,
    ) -> dt.Tensor:  # fmt: skip
        """Return recorded numbers, whose mean and deviation were PyTorch's."""
        return self.next("normal", shape, dtype, device)

    def integers(  # type: ignore[override]
        self, low: int, high: int | None = None, shape: Any = (), *, dtype: Any = None,
        device: Any = None,
    ) -> dt.Tensor:  # fmt: skip
        """Return recorded numbers, whose bounds were PyTorch's; for one number 0.

        Loaders draw one number: the seed of their workers.
        """
        return dt.asarray(0) if shape == () else self.next("integers", shape, dtype, device)

    def permutation(self, x: int, *, device: Any = None) -> dt.Tensor:  # type: ignore[override]
        """Return recorded numbers."""
        return self.next("permutation", x, None, device)


@contextmanager
def replayed_draws(draws: Draws) -> Iterator[None]:
    """Make dovetail draw the recorded numbers in the block."""
    import dovetail.torch as torch

    def multinomial(probs: dt.Tensor, num_samples: int) -> dt.Tensor:
        noise = replay.next("exponential", probs.shape, probs.dtype, probs.device)
        return (probs / noise).argmax(-1, keepdim=True)

    replay, default, original = Replay(draws), generator._default, torch.multinomial
    generator._default, torch.multinomial = replay, multinomial
    try:
        yield
    finally:
        generator._default, torch.multinomial = default, original


def run_both(name: str, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the results of a program in PyTorch and in dovetail, from equal random numbers."""
    theirs, ours = (load(name, library) for library in LIBRARIES)
    with recorded_draws() as draws:
        expected = theirs.main(**options)
    with replayed_draws(draws):
        return expected, ours.main(**options)


# --- times ----------------------------------------------------------------------------------------


def measure_step(name: str, library: str, steps: int) -> float:
    """Return the median processor time of a training step in seconds, by one thread."""
    program, ends = load(name, library), []
    backward = program.torch.Tensor.backward
    program.torch.set_num_threads(1)

    def timed(*args: Any, **kwargs: Any) -> None:
        backward(*args, **kwargs)
        ends.append(time.process_time())

    program.torch.Tensor.backward = timed
    program.main(steps=steps)
    steady = ends[len(ends) // 4 :]  # kernels are compiled in the first steps
    return statistics.median(b - a for a, b in itertools.pairwise(steady))


def measure_apart(name: str, library: str, steps: int) -> float:
    """Return `measure_step` in a process of its own."""
    command = [sys.executable, "-m", "examples.ported", name, "--steps", str(steps)]
    output = subprocess.run(
        [*command, "--measure", library],
        cwd=FOLDER.parents[1], check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    return float(output)


# --- the command ----------------------------------------------------------------------------------


def show(value: Any) -> str:
    """Return a result in one line."""
    if isinstance(value, list):
        return f"[{', '.join(map(show, value[:3]))}{', ...' if len(value) > 3 else ''}]"
    return f"{value:.5g}" if isinstance(value, float) else repr(value)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m examples.ported", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; all")
    parser.add_argument("--steps", type=int, default=8, help="training steps (%(default)s)")
    parser.add_argument("--time", action="store_true", help="print the time of a training step")
    parser.add_argument("--measure", choices=LIBRARIES, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.measure:
        print(measure_step(options.names[0], options.measure, options.steps))
        return
    for name in options.names or NAMES:
        expected, found = run_both(name, steps=options.steps)
        losses, same = expected.pop("losses"), found.pop("losses")
        print(f"{name}: {len(losses)} losses")
        print(f"  {'step':>18} {'PyTorch':>12} {'dovetail':>12}")
        for step in sorted({0, 1, 2, len(losses) // 2, len(losses) - 1} & {*range(len(losses))}):
            print(f"  {step:>18} {losses[step]:>12.6f} {same[step]:>12.6f}")
        for key, value in expected.items():
            print(f"  {key:>18} {show(value):>12} {show(found[key]):>12}")
        if options.time:
            theirs, ours = (measure_apart(name, library, options.steps) for library in LIBRARIES)
            print(f"  {'ms of a step':>18} {1e3 * theirs:>12.3f} {1e3 * ours:>12.3f}", end="")
            print(f"   {theirs / ours:.2f} x PyTorch")


if __name__ == "__main__":
    main()
