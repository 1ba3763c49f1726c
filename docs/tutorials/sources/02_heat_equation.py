# %% [markdown]
# # A heat equation
#
# Heat flows from warm to cold: the temperature of a point changes by how much it differs from the mean of its neighbours. On a plate
# that is cut into small squares this is arithmetic with neighbours, again and again.
#
# This tutorial computes it, compares it with the exact solution, breaks it on purpose, and ends with the question backwards: where was it
# warm before? For that it takes a gradient through all steps.
# %%
import math

import dovetail as dt
import matplotlib.pyplot as plt

plt.rcParams["figure.dpi"] = 84


# %% [markdown]
# ## One step
#
# `u[1:-1, 1:-1]` are the inner points, and the four slices beside them their neighbours. Slices are views, so the sum reads the plate in place.
# The new values are written to the inner points; the edge stays as it is, at temperature 0.
# %%
def step(u, rate):
    inner = u[1:-1, 1:-1]
    around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
    u[1:-1, 1:-1] = inner + rate * (around - 4 * inner)


def bump(n):
    x = dt.linspace(0, 1, n)
    return dt.sin(math.pi * x)[:, None] * dt.sin(math.pi * x)


plate = bump(64)
step(plate, 0.2)
plate
# %% [markdown]
# ## Is it right?
#
# A bump of half a sine along both axes keeps its form and shrinks. In each step it is multiplied by the same number,
# `1 - 8 * rate * sin(h * pi / 2) ** 2`, where `h` is the distance of two points. That is exact for the plate of squares, so the two must agree up
# to rounding: float32 has some seven digits.
# %%
n, rate, steps = 64, 0.2, 400
plate, start = bump(n), bump(n)
for _ in range(steps):
    step(plate, rate)

h = 1 / (n - 1)
shrunk = (1 - 8 * rate * math.sin(h * math.pi / 2) ** 2) ** steps
error = dt.max(dt.abs(plate - shrunk * start))
print(f"hottest point {dt.max(plate):.6f}, by the formula {shrunk * dt.max(start):.6f}")
print(f"largest error {error:.1e}")
assert error < 1e-5
# %% [markdown]
# ## The limit
#
# With `rate` above 1/4 a point gives away more than it has. Rounding errors then grow from step to step, fastest where neighbours alternate. This is a
# property of the method and not of the library. A plate of random temperatures after 60 steps:
# %%
fig, axes = plt.subplots(1, 3, figsize=(9, 2.6))
uneven = dt.random.default_rng(0).uniform((48, 48))
for axis, r in zip(axes, (0.2, 0.25, 0.26), strict=True):
    u = uneven.copy()
    for _ in range(60):
        step(u, r)
    axis.imshow(u, cmap="inferno", vmin=0, vmax=1)
    axis.set_title(f"rate {r}")
    axis.set_xticks([]), axis.set_yticks([])
plt.show()


# %% [markdown]
# ## Quicker: capture the loop
#
# A plate of 64 x 64 is so small that a step takes less time than Python needs to ask for it. `dt.jit` notes what a function does, once, and repeats
# it afterwards; the loop inside is unrolled into the program that it keeps. The result has the same bits.
# %%
@dt.jit
def ten_steps(u):
    for _ in range(10):
        step(u, 0.2)
    return u


captured = bump(n)
for _ in range(steps // 10):
    ten_steps(captured)
assert dt.all(captured == plate)


# %% [markdown]
# ## Backwards
#
# A camera has seen the plate after 30 steps. What did it look like before? Guess, compute forwards, compare, and move the guess against the
# gradient of the difference. A tensor that requires a gradient is not written in place here, so the step is said as a value: the change is padded with
# zeros for the edge.
# %%
def after(u, count=30):
    for _ in range(count):
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        u = u + 0.2 * dt.pad(around - 4 * u[1:-1, 1:-1], 1)
    return u


truth = dt.zeros((32, 32))
truth[8:14, 6:12] = 1.0
truth[18:26, 17:27] = 0.6
seen = after(truth)


@dt.jit
def slope(guess):
    return dt.func.grad(lambda g: dt.sum((after(g) - seen) ** 2))(guess)


guess, speed = dt.zeros((32, 32)), dt.zeros((32, 32))
for _ in range(300):
    speed = 0.9 * speed - 0.2 * slope(guess)
    guess = dt.maximum(guess + speed, 0)  # nothing is colder than the edge

fig, axes = plt.subplots(1, 3, figsize=(9, 2.8))
for axis, (title, u) in zip(
    axes, {"before": truth, "seen": seen, "found": guess}.items(), strict=True
):
    axis.imshow(u, cmap="inferno", vmin=0, vmax=1)
    axis.set_title(title)
    axis.set_xticks([]), axis.set_yticks([])
plt.show()
misfit = dt.sqrt(dt.mean((after(guess) - seen) ** 2)).item()
print(f"what it would look like differs from what was seen by {misfit:.4f}")
assert misfit < 0.01
# %% [markdown]
# Edges stay soft: diffusion forgets them, and the gradient cannot bring back what is no longer in the picture.
#
# ## What to read next
#
# - [A Monte Carlo option](05_monte_carlo_option.ipynb): a gradient by something else than a field.
# - [Gradients](../autograd.md): in-place writes, views, higher orders.
# - [Numerics](../numerics.md): why the captured loop has the same bits.
# - `examples/heat_equation.py` and `examples/wave.py`: beside NumPy.
