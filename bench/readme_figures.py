"""README's picture and table of measured times: `python bench/readme_figures.py [--measure]`.

Both are written from `readme_figures.json`. `--measure` measures the rows first, as `run.py` does,
and writes that file; `--check` says if the table or a picture is stale.
"""

from __future__ import annotations

import argparse
import datetime
import functools
import json
import os
import re
import sys
import textwrap
from collections.abc import Iterator, Sequence
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any

import comparison
import dovetail as dt
import numpy as np
from comparison_cases import (
    Array,
    Case,
    Foreign,
    M,
    Work,
    everyone,
    matmul,
    numbers,
    peer,
    softmax,
    sorting,
)
from rich.progress import track

ROOT = Path(__file__).parent.parent
FIGURES = Path(__file__).with_suffix(".json")
README = ROOT / "README.md"
COMMAND = "python bench/readme_figures.py --measure"
BEGIN, END = "<!-- figures: begin -->\n", "<!-- figures: end -->\n"
LIBRARIES = {"dovetail": "dovetail", "numpy": "NumPy", "torch": "PyTorch", "jax": "JAX, jitted"}
PACKAGES = {"NumPy": "numpy", "PyTorch": "torch", "JAX": "jax"}
Figures = dict[str, Any]  # of the JSON file


# --- the rows -------------------------------------------------------------------------------------


def _chain(xp: Foreign, x: Foreign, y: Foreign) -> Foreign:
    return xp.sqrt(x * x + y * y) * 0.5 + xp.tanh(x - y)


def softmax_gradient(rows: int, columns: int) -> Case:
    """A softmax, and the gradient of its product with other numbers."""

    def by_numpy(x: Array, g: Array) -> Work:
        def work() -> Array:
            e = np.exp(x - x.max(axis=1, keepdims=True))
            y = e / e.sum(axis=1, keepdims=True)
            return y * (g - (g * y).sum(axis=1, keepdims=True))

        return work

    def ours(x: Array, g: Array) -> Work:
        point, incoming = dt.asarray(x).requires_grad_(), dt.asarray(g)

        def work() -> dt.Tensor:
            result: dt.Tensor = dt.grad(dt.softmax(point, axis=1), point, incoming)
            dt.evaluate(result)
            return result

        return work

    def by_torch(x: Array, g: Array) -> Work:
        torch = peer("torch")
        point, incoming = torch.from_numpy(x).requires_grad_(), torch.from_numpy(g)
        return lambda: torch.autograd.grad(torch.softmax(point, 1), point, incoming)[0]

    def by_jax(x: Array, g: Array) -> Work:
        jax = peer("jax")

        @jax.jit
        def gradient(x: Foreign, g: Foreign) -> Foreign:
            return jax.vjp(lambda x: jax.nn.softmax(x, axis=1), x)[1](g)[0]

        arrays = [jax.numpy.asarray(a) for a in (x, g)]
        return lambda: gradient(*arrays).block_until_ready()

    contestants = {"dovetail": ours, "numpy": by_numpy, "torch": by_torch, "jax": by_jax}
    return Case("softmax and its gradient", (), numbers(rows, columns, count=2), contestants)


def lstm(steps: int, batch: int, size: int) -> Case:
    """The forward pass of an LSTM layer, with the weights of PyTorch's."""

    def inputs() -> Sequence[Array]:
        rng = np.random.default_rng(7)
        shapes = ((steps, batch, size), (4 * size, size), (4 * size, size), (4 * size,))
        return [rng.uniform(-0.1, 0.1, shape).astype("f4") for shape in shapes]

    def by_numpy(x: Array, inner: Array, outer: Array, bias: Array) -> Work:
        def work() -> Array:
            h = c = np.zeros((batch, size), "f4")
            out = []
            for step in x:
                i, f, g, o = np.split(step @ inner.T + h @ outer.T + bias, 4, axis=1)
                c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
                h = _sigmoid(o) * np.tanh(c)
                out.append(h)
            return np.stack(out)

        return work

    def layer(library: Foreign, tensor: Foreign, x: Array, *weights: Array) -> Work:
        module = library.nn.LSTM(size, size)
        names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
        arrays = (*weights, np.zeros_like(weights[-1]))
        module.load_state_dict(dict(zip(names, map(tensor, arrays), strict=True)))
        data = tensor(x)

        def work() -> Foreign:
            with library.no_grad():
                result = module(data)[0]
            if library is dt:
                dt.evaluate(result)
            return result

        return work

    contestants = {
        "dovetail": functools.partial(layer, dt, dt.asarray),
        "numpy": by_numpy,
        "torch": lambda *arrays: layer(peer("torch"), peer("torch").from_numpy, *arrays),
    }
    return Case(f"LSTM, {batch} x {steps} x {size}", (), inputs, contestants, tolerance=1e-4)


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))  # type: ignore[no-any-return]  # an array


def cases(shrink: int = 1) -> dict[str, Case]:
    """The rows by their names in README. `shrink`: divide the sizes by this, for tests."""
    rows, columns, n = 4096 // shrink, 1024 // shrink, M // shrink
    chain = Case("chain", (), numbers(n, count=2), everyone(_chain))
    return {
        "`sqrt(x*x + y*y) * 0.5 + tanh(x - y)`, 1 M": chain,
        "softmax, 4096 x 1024": softmax(rows, columns),
        "softmax and its gradient": softmax_gradient(rows, columns),
        "sort, 1 M": sorting("sort", "f4", n),
        "matrix product, 1024 x 1024": matmul(columns),
        "LSTM, 32 x 64 x 128": lstm(max(64 // shrink, 2), 32, 128 // shrink),
    }


def measure(rounds: int, shrink: int = 1) -> Figures:
    """Measure every row, and return the figures that the file holds."""
    chosen = cases(shrink)
    peers = [name for name in LIBRARIES if name != "dovetail"]
    results = track(
        comparison.measure([*chosen.values()], peers, rounds),
        "measuring",
        len(chosen),
        transient=True,
        disable=not sys.stdout.isatty(),
    )
    today = datetime.date.today()
    return {
        "machine": f"{comparison.THREADS} threads of {_cpu()}",
        "date": f"{today.day} {today:%B %Y}",
        "versions": {k: ".".join(version(v).split(".")[:2]) for k, v in PACKAGES.items()},
        "rows": [
            {"name": name, "seconds": {k: float(f"{v:.3g}") for k, v in result.seconds.items()}}
            for name, result in zip(chosen, results, strict=True)
        ],
    }


def _cpu() -> str:
    """Return the name of the processor, as Linux gives it."""
    path = Path("/proc/cpuinfo")
    names = re.findall(r"model name\s*: (.*)", path.read_text()) if path.exists() else []
    return names[0] if names else "an unknown CPU"


# --- README ---------------------------------------------------------------------------------------


def markdown(figures: Figures) -> str:
    """Return README's section: the picture, its caption, and the table of the same figures."""
    versions = ", ".join(f"{k} {v}" for k, v in figures["versions"].items())
    lost = sum(min(r["seconds"], key=r["seconds"].get) != "dovetail" for r in figures["rows"])
    wins = f"dovetail is first in {len(figures['rows']) - lost} of {len(figures['rows'])} rows."
    caption = (
        f"Milliseconds a call, shorter is better. {wins} Float32 on {figures['machine']}, "
        f"{figures['date']}, {versions}. Each library runs in a process of its own, in turn, and "
        "the least of many calls counts. dovetail's statements are not captured. "
        f"`{COMMAND}` measures again; [benchmarks](docs/benchmarks.md) has more rows, and the "
        "targets that are missed."
    )
    lines = [
        "<picture>",
        '  <source media="(prefers-color-scheme: dark)" srcset="docs/pictures/readme-dark.svg">',
        f'  <img alt="Times of {len(figures["rows"])} operations in four libraries, as bars; '
        'the table below has the numbers" src="docs/pictures/readme-light.svg" width="800">',
        "</picture>",
        "",
        *textwrap.wrap(caption, 120, break_on_hyphens=False),
        "",
        "<details><summary>The numbers</summary>",
        "",
        f"| | {' | '.join(LIBRARIES.values())} |",
        "|---|" + "---|" * len(LIBRARIES),
        *(f"| {row['name']} | {' | '.join(_cells(row['seconds']))} |" for row in figures["rows"]),
        "",
        "</details>",
    ]
    return "\n".join(lines) + "\n"


def _cells(seconds: dict[str, float]) -> Iterator[str]:
    """Yield the text of each library's time; the least one is bold."""
    for library in LIBRARIES:
        text = f"{_milliseconds(seconds[library])} ms" if library in seconds else ""
        yield f"**{text}**" if seconds.get(library) == min(seconds.values()) else text


def _milliseconds(seconds: float) -> str:
    """Return 0.00025 as "0.25"."""
    return f"{seconds * 1e3:.3g}"


# --- the picture ----------------------------------------------------------------------------------

COLORS = {
    "light": {"text": "#1f2328", "quiet": "#59636e", "dovetail": "#0969da", "peer": "#b6bec7"},
    "dark": {"text": "#f0f6fc", "quiet": "#9198a1", "dovetail": "#4493f8", "peer": "#57606a"},
}
PANEL_WIDTH, PANEL_HEIGHT, BAR_HEIGHT, LABEL_WIDTH, BAR_WIDTH = 400, 118, 16, 64, 262  # pixels
FONT = "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif"


def svg(figures: Figures, scheme: str) -> str:
    """Return the picture for a light or dark page: a panel for each row, a bar for each library."""
    rows = figures["rows"]
    height = (len(rows) + 1) // 2 * PANEL_HEIGHT
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * PANEL_WIDTH} {height}" '
        f'font-family="{FONT}" font-size="12">'
    ]
    for i, row in enumerate(rows):
        x, y = i % 2 * PANEL_WIDTH + 8, i // 2 * PANEL_HEIGHT + 20
        lines += _panel(row, COLORS[scheme], x, y)
    return "\n".join([*lines, "</svg>"]) + "\n"


def _panel(row: dict[str, Any], colors: dict[str, str], x: int, y: int) -> Iterator[str]:
    """Yield the elements of a row's panel: its name, then its bars, each with its time."""
    yield _text(x, y, row["name"].replace("`", ""), colors["text"], "bold")
    times = [row["seconds"][k] for k in LIBRARIES if k in row["seconds"]]
    labels = [v.partition(",")[0] for k, v in LIBRARIES.items() if k in row["seconds"]]
    for i, (label, seconds) in enumerate(zip(labels, times, strict=True)):
        left, top = x + LABEL_WIDTH, y + 10 + i * (BAR_HEIGHT + 4)
        color = colors["dovetail" if label == "dovetail" else "peer"]
        width = max(2.0, round(BAR_WIDTH * seconds / max(times), 1))
        weight = "bold" if seconds == min(times) else "normal"
        yield _text(x, top + 12, label, colors["quiet"])
        yield f'<rect x="{left}" y="{top}" width="{width}" height="{BAR_HEIGHT}" fill="{color}"/>'
        yield _text(left + width + 5, top + 12, _milliseconds(seconds), colors["text"], weight)


def _text(x: float, y: float, text: str, color: str, weight: str = "normal") -> str:
    return f'<text x="{x}" y="{y}" fill="{color}" font-weight="{weight}">{escape(text)}</text>'


# --- files ----------------------------------------------------------------------------------------


def outputs(figures: Figures) -> dict[Path, str]:
    """Return the text of each file that shows the figures."""
    before, _, rest = README.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    pictures = README.parent / "docs" / "pictures"
    return {
        README: before + BEGIN + markdown(figures) + END + after,
        **{pictures / f"readme-{scheme}.svg": svg(figures, scheme) for scheme in COLORS},
    }


def stale(figures: Figures) -> list[str]:
    """Return the names of the files that do not show the figures."""
    found = outputs(figures).items()
    return [p.name for p, text in found if not p.exists() or p.read_text() != text]


def main() -> int:
    """Return 0, or 1 if asked to check and a file is stale."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measure", action="store_true", help="measure the rows first")
    parser.add_argument("--rounds", type=int, default=15, help="turns of each library at a row")
    parser.add_argument("--check", action="store_true", help="write nothing, compare the files")
    asked = parser.parse_args()
    if asked.measure:
        status = comparison.respawned(sys.argv)
        if status is not None:
            return status
        FIGURES.write_text(json.dumps(measure(asked.rounds), indent=1) + os.linesep)
    figures = json.loads(FIGURES.read_text())
    if asked.check:
        names = stale(figures)
        print(f"stale: {', '.join(names)}; python bench/readme_figures.py" if names else "as is")
        return int(bool(names))
    for path, text in outputs(figures).items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
