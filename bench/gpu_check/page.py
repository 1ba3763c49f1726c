"""The record of one run as a page: what was run, what failed, what was measured, good and bad."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

AIM_SHARE, AIM_LAUNCH = 0.85, 12e-6  # of the copy's rate; seconds


def page(run: Mapping[str, Any]) -> str:
    """Markdown. `run` holds what the steps of `__main__` found."""
    parts = [f"# {run['gpu']}, {run['date']}", INTRODUCTION, _setting(run)]
    for device, kit in run.get("kits", {}).items():
        parts.append(_kit(device, kit))
    if "demo" in run:
        parts.append(f"## Demo\n\n```\n{run['demo'].strip()}\n```")
    for device, figures in run.get("figures", {}).items():
        parts += [f"## Figures of {device}", *_figures(figures)]
    if run.get("problems"):
        parts.append("## What did not run\n\n" + "\n".join(f"- {p}" for p in run["problems"]))
    return "\n\n".join(parts) + "\n"


INTRODUCTION = (
    "Written by `python bench/gpu_check` on a machine with this GPU; everything that it found is "
    "here."
)


def _setting(run: Mapping[str, Any]) -> str:
    return table(("", ""), [(k, str(v)) for k, v in run["setting"].items()])


def _kit(device: str, kit: Mapping[str, Any]) -> str:
    counts = ", ".join(f"{n} {outcome}" for outcome, n in kit["counts"].items())
    lines = [
        f"## Conformance of {device}",
        "",
        f"{'Conforms' if kit['conforms'] else 'Does not conform'}: {counts}; "
        f"{kit['comparisons']} comparisons, {kit['seconds']} s, digest `{kit['digest'][:16]}`.",
    ]
    for f in kit["failures"]:
        message = (f["message"].strip() or "no message").splitlines()[0][:200]
        lines += ["", f"- {f['case']} ({f['outcome']}): `{message}`"]
    return "\n".join(lines)


def _figures(f: Mapping[str, Any]) -> list[str]:
    copy = f["copy rate"]
    others = [name for name in f["seconds"] if name != "dovetail"]
    rows = []
    for work, took in f["seconds"]["dovetail"].items():
        rate = f["bytes"][work] / took
        theirs = [f"{f['seconds'][o][work] / took:.2f}x" for o in others]
        cells = (f"{took * 1e3:.3f} ms", f"{rate / 1e9:.0f} GB/s", f"{rate / copy:.0%}")
        rows.append((f"`{work}`", *cells, *theirs, f"{f['errors'][work]:.1e}"))
    head = ("work", "time", "rate", "of copy", *(f"speed of {o} = 1" for o in others), "error")
    return [
        f"{f['elements']:,} float32; a copy from device to device by the driver moves "
        f"{copy / 1e9:.0f} GB/s (bytes read and written). The aim is {AIM_SHARE:.0%} of that.",
        table(head, rows),
        table(("small things", "time"), [(k, _us(v)) for k, v in f["latencies"].items()])
        + f"\n\nThe aim for a launch is {AIM_LAUNCH * 1e6:.0f} us.",
        table(("copies", "rate"), [(k, f"{v / 1e9:.1f} GB/s") for k, v in f["host rates"].items()]),
        _products(f["products"]),
    ]


def _products(rates: Mapping[str, Mapping[str, float]]) -> str:
    """The table of products: the vendor's routine beside the generated kernels."""
    ways = [*dict.fromkeys(way for found in rates.values() for way in found)]
    rows = []
    for name, found in rates.items():
        cells = [f"{found[w] / 1e12:.2f} TFLOP/s" if w in found else "" for w in ways]
        shares = [f"{found[ways[-1]] / found[ways[0]]:.0%}"] if len(ways) == len(found) == 2 else []
        rows.append((name, *cells, *(shares or [""])))
    note = (
        "The vendor's routine stays the default of a dtype for which the generated kernel is slower"
        " at these sizes."
    )
    return table(("products, n x n", *ways, "share"), rows) + f"\n\n{note}"


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:.1f} us" if seconds < 1e-3 else f"{seconds * 1e3:.1f} ms"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown; numbers to the right."""
    lines = [f"| {' | '.join(head)} |", f"|---{'|---:' * (len(head) - 1)}|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])
