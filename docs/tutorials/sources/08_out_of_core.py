# %% [markdown]
# # Out of core with Dask
#
# Data that is larger than memory is worked on a piece at a time. Dask cuts arrays into chunks and decides which are computed when; dovetail's
# tensors can be those chunks, so each is computed by fused kernels.
#
# This tutorial finds the mean, the spread and the principal components of a file without ever having all of it in memory, and then answers a question that is
# often left open: does the result depend on how the data is cut?
#
# `pip install "dovetail-tensor[scale]"` brings Dask.
# %%
import tempfile
from pathlib import Path

import dask
import dask.array as da
import dovetail as dt
import matplotlib.pyplot as plt
import numpy as np

plt.rcParams["figure.dpi"] = 84
dask.config.set(scheduler="synchronous")
# %% [markdown]
# ## A file
#
# 262,144 rows of 32 numbers, 32 MiB, written in pieces. It would be the same with a thousand times as many.
# %%
rows, columns, piece = 262_144, 32, 16_384
path = Path(tempfile.mkdtemp()) / "data.npy"
out = np.lib.format.open_memmap(path, mode="w+", dtype="f4", shape=(rows, columns))
draw = dt.random.default_rng(0)
directions = draw.normal((3, columns)) * dt.asarray([[3.0], [2.0], [1.0]])
for start in range(0, rows, piece):
    points = draw.normal((piece, 3)) @ directions + 0.5 * draw.normal((piece, columns)) + 1.0
    out[start : start + piece] = points.numpy()
out.flush()
print(f"{path.stat().st_size / 2**20:.0f} MiB")
# %% [markdown]
# ## Chunks that are tensors
#
# `np.load(..., mmap_mode="r")` maps the file and reads nothing yet. Dask cuts it into chunks, and `map_blocks(dt.asarray)` makes each a tensor when its turn comes.
# %%
mapped = np.load(path, mmap_mode="r")
x = da.from_array(mapped, chunks=(piece, columns)).map_blocks(
    dt.asarray, meta=np.empty((0, 0), "f4")
)
x
# %%
mean = x.mean(axis=0).compute()
print(type(mean).__module__.split(".")[0], mean.shape)
mean
# %% [markdown]
# What comes out is a tensor. Elementwise functions, reductions, slices and products go through; `compute` runs them chunk by chunk.
#
# ## Principal components
#
# The covariance is a sum over rows, so it can be added up chunk by chunk; it is a small matrix, and its eigenvectors need no Dask.
# %%
centred = x.map_blocks(lambda part: part - mean)
covariance = (centred.T @ centred).compute() / rows
values, vectors = dt.linalg.eigh(covariance.astype(dt.float64))

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 2.8))
left.bar(dt.arange(columns), dt.flip(values) / dt.sum(values))
left.set_title("share of the variance"), left.set_xlabel("component")
some = dt.asarray(mapped[::64]) - mean
plane = some.astype(dt.float64) @ vectors[:, -2:]
right.plot(plane[:, 1], plane[:, 0], ",")
right.set_title("rows along the first two")
plt.show()
kept = (dt.sum(values[-3:]) / dt.sum(values)).item()
print(f"three components have {kept:.1%} of the variance")
assert kept > 0.9
# %% [markdown]
# ## How much memory?
#
# Each device counts what its tensors take. There is one thing to know: work is deferred, and a result that nobody has looked at holds what it will
# be computed from. Dask does not look at the results of chunks before the end, so all chunks would be held. Within `dt.eager()` each
# operation is computed at once, and a chunk can go.
# %%
device = dt.default_device()


def peak(work):
    dt.memory.reset_peak(device)
    work()
    return dt.memory.stats(device).peak_live_bytes / 2**20


deferred = peak(lambda: x.std(axis=0).compute())
with dt.eager():
    eager = peak(lambda: x.std(axis=0).compute())
print(f"at most {deferred:.1f} MiB; {eager:.1f} MiB in dt.eager")
assert eager < 16 < deferred


# %% [markdown]
# A function of your own for a chunk keeps its fusion and still lets go of the chunk: it ends with `dt.evaluate`, as the one below does.
# %% [markdown]
# ## Does the cut matter?
#
# Floats are not associative: another order of additions has other last bits. With Dask the order follows the chunks:
# %%
def variance(chunk):
    x = da.from_array(mapped, chunks=(chunk, columns)).map_blocks(
        dt.asarray, meta=np.empty((0, 0), "f4")
    )
    return x.var(axis=0).compute().numpy()


a, b = variance(16_384), variance(65_536)
print("equal:", np.array_equal(a, b), " largest difference:", np.abs(a - b).max())
# %% [markdown]
# Within dovetail the order of a sum depends on its length alone: not on the device, not on threads. That helps here, too. Sum in blocks of a fixed number of
# rows *inside* each chunk, and the blocks' sums at the end in the order of rows; then any chunk of whole blocks gives the same bits.
# %%
BLOCK = 4096


def block_sums(part, mean):
    blocks = dt.asarray(part).reshape((-1, BLOCK, columns)) - mean
    sums = dt.sum(blocks * blocks, axis=1)
    dt.evaluate(sums)
    return sums


def variance(chunk, mean):
    parts = [
        dask.delayed(block_sums)(mapped[start : start + chunk], mean)
        for start in range(0, rows, chunk)
    ]
    return (dt.sum(dt.concat(list(dask.compute(*parts))), axis=0) / rows).numpy()


found = {chunk: variance(chunk, mean) for chunk in (4096, 16_384, 65_536, rows)}
for chunk, v in found.items():
    print(f"chunks of {chunk:7,} rows: {v[:3]}")
assert len({v.tobytes() for v in found.values()}) == 1
# %% [markdown]
# The same bits, down to a chunk that is the whole file. With `dask.distributed` it holds for any number of workers: `dovetail demo scale` shows it on data
# four times as large as the memory that its workers may take.
#
# ## What to read next
#
# - [With NumPy](../numpy.md): Dask, copies, pickles and files.
# - [Memory](../memory.md): limits, and what holds memory.
# - [Numerics](../numerics.md): what is promised about bits.
# - [Digits](03_digits.ipynb): components and clusters of data that fits.
