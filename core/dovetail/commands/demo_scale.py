"""`dovetail demo scale`: cluster data that is four times as large as the memory limit.

The data is in a file. Dask workers, one process each, map the file and read one chunk of rows at a
time. All tensors of the workers share a hard memory limit. Sums are computed in blocks of 4096 rows
for every chunk size, and then over the blocks in the order of rows. The results therefore have the
same bits for any number of workers and for all chunks of whole blocks; the demo fails if they
differ. With `--full` the data and the memory are four times as large.
"""

from __future__ import annotations

import hashlib
import importlib
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

import dovetail as dt

from ..command_line import CommandParser, existing_folder, positive_int
from ..memory.units import format_bytes
from ..tensor.tensor import Tensor
from .demo import DemoSeconds, add_full, report_missing_modules

BLOCK_ROWS = 4096  # rows that are summed together
FEATURES, COMPONENTS, CLUSTERS, STEPS = 32, 4, 8, 6
DATA_MEMORY_RATIO = 4  # times the memory allowed: the data
CHUNKS_PER_MEMORY = 8  # of a worker's memory: a chunk is one in so many parts of it
ROW_BYTES = 4 * FEATURES  # bytes
MIB = 1 << 20
MEMORY_MIB, FULL_MEMORY_MIB = 32, 128
SECONDS, FULL_SECONDS = DemoSeconds(30, 60, 600), DemoSeconds(60, 120, 2400)
MEMORY_MIB_MIN = 4  # MiB: two workers hold a block each, and what they make of it

# of blocks of rows, (blocks, BLOCK_ROWS, FEATURES), and tensors
BlockFunction = Callable[..., Tensor]


@dataclass(frozen=True)
class RowSource:
    """Rows in a file, and the device that works on them."""

    path: str
    rows: int
    device: str

    def blocks(self, start: int, stop: int) -> Tensor:
        """Copy the rows from `start` to `stop` to the device, as (blocks, BLOCK_ROWS, FEATURES)."""
        part = np.load(self.path, mmap_mode="r")[start:stop]
        return dt.asarray(part, device=self.device).reshape((-1, BLOCK_ROWS, FEATURES))


@dataclass(frozen=True)
class WorkPartition:
    """The partition of the work of one run."""

    workers: int
    rows: int  # of a chunk


@dataclass
class ScaleOutcome:
    """The results of one run."""

    partition: WorkPartition
    results: list[np.ndarray]  # mean, components, centroids, sizes of clusters
    kept: float = 0.0  # share of the variance that the components have
    seconds: float = 0.0
    peak: int = 0  # bytes of all workers' tensors

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the bytes of all results."""
        whole = b"".join(np.ascontiguousarray(a).tobytes() for a in self.results)
        return hashlib.sha256(whole).hexdigest()


# --- work on blocks -------------------------------------------------------------------------------


def block_sums(x: Tensor) -> Tensor:
    """Return the sums of each block's rows: (blocks, FEATURES)."""
    return dt.sum(x, axis=1)


def block_products(x: Tensor, mean: Tensor) -> Tensor:
    """Return the products of each block's centred columns: (blocks, FEATURES, FEATURES)."""
    centred = x - mean
    return centred.mT @ centred


def block_clusters(x: Tensor, mean: Tensor, basis: Tensor, centroids: Tensor) -> Tensor:
    """Return the sum and the count of each block's points nearest to each centroid.

    The shape is (blocks, CLUSTERS, COMPONENTS + 1).
    """
    points = (x - mean) @ basis
    squared_distances = dt.sum((dt.expand_dims(points, axis=2) - centroids) ** 2, axis=-1)
    kinds = dt.arange(CLUSTERS, device=x.device)
    member = dt.astype(
        dt.expand_dims(dt.argmin(squared_distances, axis=-1), axis=-1) == kinds, dt.float32
    )
    ones = dt.ones((*points.shape[:-1], 1), device=x.device)
    return member.mT @ dt.concat([points, ones], axis=-1)


def _compute_chunk(
    source: RowSource, work: BlockFunction, start: int, stop: int, tensors: Sequence[Tensor]
) -> Tensor:
    """Compute and evaluate `work` on a chunk's blocks with fixed reduction orders, on a worker."""
    with dt.vendor_products(False):
        result = work(source.blocks(start, stop), *tensors)
        dt.evaluate(result)
    return result


# --- work on all rows -----------------------------------------------------------------------------


def total(source: RowSource, cut: WorkPartition, work: BlockFunction, *tensors: Tensor) -> Tensor:
    """Return the sum over all blocks of the results of `work`, on Dask's workers."""
    dask: Any = importlib.import_module("dask")
    starts = range(0, source.rows, cut.rows)
    chunks = [
        dask.delayed(_compute_chunk)(source, work, a, min(a + cut.rows, source.rows), tensors)
        for a in starts
    ]
    return dt.sum(dt.concat(list(dask.compute(*chunks))), axis=0)


def analyse(source: RowSource, cut: WorkPartition) -> ScaleOutcome:
    """Compute principal components, then k-means of the rows' positions along them."""
    every = partial(total, source, cut)
    mean = every(block_sums) / source.rows
    covariance = every(block_products, mean) / source.rows
    values, vectors = dt.linalg.eigh(dt.astype(covariance, dt.float64))
    basis = dt.copy(dt.astype(vectors[:, -COMPONENTS:], dt.float32))
    first = source.blocks(0, BLOCK_ROWS)[0, :: BLOCK_ROWS // CLUSTERS]
    with dt.vendor_products(False):
        centroids = (first - mean) @ basis
    for _ in range(STEPS):
        totals = every(block_clusters, mean, basis, centroids)
        sums, counts = totals[:, :-1], totals[:, -1:]
        centroids = dt.where(counts > 0, sums / dt.maximum(counts, 1.0), centroids)
        dt.evaluate(centroids, counts)
    results = [a.numpy() for a in (mean, basis, centroids, counts)]
    return ScaleOutcome(cut, results, float(dt.sum(values[-COMPONENTS:]) / dt.sum(values)))


def write_data(path: Path, rows: int, device: str) -> None:
    """Write `rows` random rows in clusters, with noise, to a .npy file, block by block."""
    out = np.lib.format.open_memmap(path, mode="w+", dtype="<f4", shape=(rows, FEATURES))
    draw = dt.random.default_rng(0)
    centres = draw.normal((CLUSTERS, COMPONENTS), std=3.0, device=device)
    directions = draw.normal((COMPONENTS, FEATURES), device=device)
    for start in range(0, rows, BLOCK_ROWS):
        kinds = draw.integers(0, CLUSTERS, (BLOCK_ROWS,), device=device)
        points = centres[kinds] + draw.normal((BLOCK_ROWS, COMPONENTS), device=device)
        with dt.vendor_products(False):
            block = points @ directions + draw.normal((BLOCK_ROWS, FEATURES), device=device)
        out[start : start + BLOCK_ROWS] = block.numpy()
    out.flush()


# --- the command ----------------------------------------------------------------------------------


def main(arguments: Sequence[str]) -> int:
    """Run the demo; return 0 if all runs have the same bits, 1 if not, 2 if it cannot run."""
    options, console = parser(), Console(soft_wrap=True)
    asked = options.parse_args(arguments)
    mib = asked.memory or (FULL_MEMORY_MIB if asked.full else MEMORY_MIB)
    if mib < MEMORY_MIB_MIN:
        return options.print_error(f"--memory must be at least {MEMORY_MIB_MIN} MiB, got {mib}")
    if report_missing_modules(options, ("dask", "distributed"), "scale"):
        return 2
    (FULL_SECONDS if asked.full else SECONDS).announce([asked.device], console)
    memory = mib * MIB
    rows = DATA_MEMORY_RATIO * memory // ROW_BYTES // BLOCK_ROWS * BLOCK_ROWS
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        source = RowSource(str(Path(folder) / "data.npy"), rows, asked.device)
        console.print(
            f"{rows:,} rows of {FEATURES} numbers, {format_bytes(rows * ROW_BYTES)}, in a file; "
            f"{format_bytes(memory)} of memory for tensors on {asked.device}"
        )
        write_data(Path(source.path), rows, asked.device)
        outcomes = []
        silent = not console.is_terminal
        for cut in track(
            work_partitions(memory), "runs", console=console, transient=True, disable=silent
        ):
            outcomes.append(run(source, cut, memory))
            console.print(f"{cut.workers} workers, {cut.rows:,} rows per chunk: done")
    console.print(table(outcomes, memory))
    same = len({o.digest for o in outcomes}) == 1
    console.print("All runs have the same bits." if same else "[red]The runs differ.[/]")
    return 0 if same else 1


def work_partitions(memory: int) -> list[WorkPartition]:
    """Return three partitions: one worker; two; two with smaller chunks."""
    whole = [
        max(1, memory // workers // CHUNKS_PER_MEMORY // (BLOCK_ROWS * ROW_BYTES))
        for workers in (1, 2)
    ]
    small = max(1, whole[1] // 3)
    return [
        WorkPartition(1, whole[0] * BLOCK_ROWS),
        WorkPartition(2, whole[1] * BLOCK_ROWS),
        WorkPartition(2, small * BLOCK_ROWS),
    ]


def run(source: RowSource, cut: WorkPartition, memory: int) -> ScaleOutcome:
    """Analyse once, on new worker processes whose tensors may have `memory` bytes in total."""
    distributed: Any = importlib.import_module("distributed")
    with (
        distributed.LocalCluster(
            n_workers=cut.workers, threads_per_worker=1, memory_limit=0, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        client.run(dt.memory.set_limit, source.device, memory // cut.workers)
        begun = time.perf_counter()
        outcome = analyse(source, cut)
        outcome.seconds = time.perf_counter() - begun
        outcome.peak = sum(client.run(_peak_bytes, source.device).values())
    return outcome


def _peak_bytes(device: str) -> int:
    """Return the peak of the bytes reserved for tensors in this process."""
    return dt.memory.stats(device).peak_reserved


def table(outcomes: Sequence[ScaleOutcome], memory: int) -> Table:
    """Return a table with a row for each run, which fits a terminal of 80 columns."""
    title = (
        f"peak: of all tensors, {format_bytes(memory)} allowed; variance: kept by the components"
    )
    rows = Table("workers", "rows per chunk", "seconds", "peak", "variance", title=title)
    rows.add_column("digest", no_wrap=True)
    for o in outcomes:
        rows.add_row(
            str(o.partition.workers),
            f"{o.partition.rows:,}",
            f"{o.seconds:.1f}",
            format_bytes(o.peak),
            f"{o.kept:.1%}",
            o.digest[:16],
        )
    return rows


def parser() -> CommandParser:
    """Build the argument parser of this command."""
    options = CommandParser(prog="dovetail demo scale", description=__doc__)
    options.add_argument(
        "--memory",
        type=positive_int,
        metavar="MIB",
        help="limit the memory of tensors to this many MiB "
        f"(default: {MEMORY_MIB}, with --full {FULL_MEMORY_MIB})",
    )
    add_full(options, f"use {FULL_MEMORY_MIB} MiB of memory")
    options.add_device("cpu")
    options.add_argument(
        "--folder",
        type=existing_folder,
        metavar="DIR",
        help="write the data to the folder DIR (default: the temporary folder)",
    )
    return options
