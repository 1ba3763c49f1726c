# %% [markdown]
# # A custom kernel
#
# Whole-tensor operations say most things well. Some they do not: a loop whose length differs from point to point, a stencil that is written once
# and read clearly, a histogram. dovetail has two doors to kernels of your own. Both take a Python function, and what comes out runs on every
# device with the same bits.
#
# - `@dt.elementwise`: a function of *numbers*. It fuses with what is around it, and its gradient comes by itself.
# - `@dt.kernel`: loops, loads and stores over whole tensors.
# %%
import math

import dovetail as dt
import matplotlib.pyplot as plt

plt.rcParams["figure.dpi"] = 84


# %% [markdown]
# ## A function of numbers
#
# The Mandelbrot set: repeat `z = z * z + c`, and count the rounds until `z` has left the disc of radius 2. In tensors each round would go over the
# whole picture. As an elementwise function the loop is inside of the kernel, and a point stays in registers.
# %%
@dt.elementwise
def rounds(x, y, *, limit=60):
    def step(i, carried):
        re, im, count = carried
        inside = re * re + im * im < 4
        after = re * re - im * im + x, 2 * re * im + y
        return dt.where(inside, after[0], re), dt.where(inside, after[1], im), count + inside

    return dt.fori_loop(0, limit, step, (x * 0, y * 0, dt.astype(x * 0, dt.int32)))[2]


x = dt.linspace(-2.1, 0.7, 420)
y = dt.linspace(-1.2, 1.2, 360)[:, None]
fig, axis = plt.subplots(figsize=(5, 4))
axis.imshow(rounds(x, y), cmap="magma", extent=(-2.1, 0.7, -1.2, 1.2))
plt.show()


# %% [markdown]
# `x` is a row and `y` a column; operands broadcast as they do for `+`. `limit` comes by keyword, so it is fixed in the kernel. Python's `if` is
# not for numbers that are not known yet: both sides are computed, and `dt.where` chooses.
#
# ## Its gradient
#
# A soft step, and its derivative without a line about it:
# %%
@dt.elementwise
def soft_step(x, width):
    return 1 / (1 + dt.exp(-x / width))


x = dt.linspace(-4, 4, 161).requires_grad_()
y = soft_step(x, 0.5)
y.sum().backward()

fig, axis = plt.subplots(figsize=(6, 2.6))
axis.plot(x.detach(), y.detach(), label="soft step")
axis.plot(x.detach(), x.grad, label="its gradient")
axis.legend()
plt.show()
exact = (y * (1 - y) / 0.5).detach()
assert dt.max(dt.abs(x.grad - exact)) < 1e-6
# %% [markdown]
# It is one operation among others: with what stands before and after it, it is one kernel.
# %%
print(len(dt.explain(dt.tanh(soft_step(dt.ones(100) * 2, 1.0)) + 1).launches), "launch")


# %% [markdown]
# ## Loops over tensors
#
# `@dt.kernel` takes loops. `dt.grid` is a loop whose points are independent: they are what a device does at the same time. Parameters say what is read and
# what is written. Here is Gray and Scott's model of two substances that react and spread, from which spots and stripes grow.
# %%
@dt.kernel
def react(u2: dt.Out, v2: dt.Out, u: dt.In, v: dt.In, feed: float, kill: float):
    n, m = u.shape
    for i, j in dt.grid(n, m):
        up, down, left, right = (i - 1) % n, (i + 1) % n, (j - 1) % m, (j + 1) % m
        lap_u = u[up, j] + u[down, j] + u[i, left] + u[i, right] - 4 * u[i, j]
        lap_v = v[up, j] + v[down, j] + v[i, left] + v[i, right] - 4 * v[i, j]
        meet = u[i, j] * v[i, j] * v[i, j]
        u2[i, j] = u[i, j] + 0.2 * lap_u - meet + feed * (1 - u[i, j])
        v2[i, j] = v[i, j] + 0.1 * lap_v + meet - (feed + kill) * v[i, j]


def start(n):
    u, v = dt.ones((n, n)), dt.zeros((n, n))
    middle = slice(n // 2 - 8, n // 2 + 8)
    u[middle, middle], v[middle, middle] = 0.5, 0.25
    return u, v + 0.02 * dt.random.default_rng(0).uniform((n, n))


fig, axes = plt.subplots(1, 3, figsize=(9, 3))
for axis, (feed, kill) in zip(axes, ((0.035, 0.065), (0.055, 0.062), (0.03, 0.057)), strict=True):
    u, v = start(128)
    u2, v2 = dt.zeros_like(u), dt.zeros_like(v)
    for _ in range(1500):
        react(u2, v2, u, v, feed, kill)
        react(u, v, u2, v2, feed, kill)
    axis.imshow(v, cmap="viridis")
    axis.set_title(f"feed {feed}, kill {kill}")
    axis.set_xticks([]), axis.set_yticks([])
plt.show()
# %% [markdown]
# Two tensors are read and two written in one launch. `feed` and `kill` are arguments: other numbers, or another size, compile nothing.
#
# ## The same text is Python
#
# `react.__wrapped__` is the function as it was written. On NumPy's arrays it runs point by point, slowly, and can be stepped through with a
# debugger.
# %%
import numpy as np

u, v = start(24)
u2, v2 = dt.zeros_like(u), dt.zeros_like(v)
react(u2, v2, u, v, 0.035, 0.065)
plain_u, plain_v = np.zeros((24, 24), np.float32), np.zeros((24, 24), np.float32)
react.__wrapped__(plain_u, plain_v, u.numpy(), v.numpy(), 0.035, 0.065)
print("largest difference", np.abs(plain_v - v2.numpy()).max())
assert np.allclose(plain_v, v2.numpy(), atol=1e-6)


# %% [markdown]
# ## Points that meet
#
# Points of a grid run in no order. Where several write to one place, an *atomic* operation is the way; on integers the order does not matter, so the
# result is the same each time.
# %%
@dt.kernel
def histogram(counts: dt.InOut, x: dt.In, low: float, width: float):
    for i in dt.grid(len(x)):
        place = math.floor((x[i] - low) / width)
        if 0 <= place < len(counts):
            dt.atomic_add(counts, place, 1)


draws = dt.random.default_rng(1).normal((200_000,))
counts = dt.zeros(80, dtype=dt.int32)
histogram(counts, draws, -4.0, 0.1)

fig, axis = plt.subplots(figsize=(6, 2.4))
axis.bar(dt.linspace(-3.95, 3.95, 80), counts, width=0.1)
plt.show()
assert dt.sum(counts) == dt.sum((draws >= -4) & (draws < 4))
# %% [markdown]
# ## What to read next
#
# - [Kernels of one's own](../kernels.md): more of `@dt.elementwise`; a rule of your own for the gradient; `dovetail test-op`.
# - [Kernels of loops](../kernels-of-loops.md): `@dt.kernel` in full; `dt.raw_kernel` for text in a device's own language.
# - [Your own backend](07_your_own_backend.ipynb): the other end, where kernels are compiled.
# - `examples/attention_kernel.py`: a row at a point.
