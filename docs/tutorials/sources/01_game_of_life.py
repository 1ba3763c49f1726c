# %% [markdown]
# # The Game of Life
#
# A field of cells; each is alive or dead. A cell lives in the next generation if three of its eight neighbours are alive, or if
# two are and it lives already. Nothing else is said, and gliders, guns and whole computers follow from it.
#
# It is a good first program in tensors: no loop over cells, only whole fields that are shifted and added. On the way you see what
# dovetail does with such a program: it writes down what is to be computed, and computes it in one go when somebody looks.
# %%
import dovetail as dt
import matplotlib.pyplot as plt

plt.rcParams["figure.dpi"] = 84
# %% [markdown]
# ## A field
#
# Cells are numbers of one byte, 1 or 0. A *glider* is five of them. `dt.zeros` makes the field, and a slice of it is a *view*: writing
# into the slice writes into the field.
# %%
glider = dt.asarray([[0, 1, 0], [0, 0, 1], [1, 1, 1]], dtype=dt.uint8)
field = dt.zeros((16, 16), dtype=dt.uint8)
field[1:4, 1:4] = glider
field
# %% [markdown]
# A notebook shows a tensor as its facts, its values, and a picture where it is large enough.
#
# ## A generation
#
# `dt.roll` shifts a field, and what leaves it at one edge comes in at the other. So the neighbours of all cells are the sum of eight
# shifted fields, and the rule is one line.
# %%
SHIFTS = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)]


def generation(field):
    around = dt.zeros_like(field)
    for shift in SHIFTS:
        around = around + dt.roll(field, shift, axis=(0, 1))
    return ((around == 3) | ((around == 2) & (field == 1))).astype(dt.uint8)


after = generation(field)
# %% [markdown]
# ## What that costs
#
# Nothing has been computed yet. `dt.explain` says what would be: seventeen operations and more, in how many kernels?
# %%
plan = dt.explain(after)
print(len(plan.launches), "launch")
# %% [markdown]
# All shifts, sums and comparisons are one pass over the field: it is read, and the next one is written. NumPy would write each of the
# shifted fields to memory and read it again. `print(plan)` shows the kernel, and why it is one.
#
# ## Watch it fly
# %%
steps = [field]
for _ in range(24):
    steps.append(generation(steps[-1]))

fig, axes = plt.subplots(1, 4, figsize=(9, 2.4))
for axis, step in zip(axes, (0, 4, 12, 24), strict=True):
    axis.imshow(steps[step], cmap="Greys", vmin=0, vmax=1)
    axis.set_title(f"generation {step}")
    axis.set_xticks([]), axis.set_yticks([])
plt.show()
# %% [markdown]
# A glider is itself again after four generations, one cell further down and to the right. That can be said exactly:
# %%
assert dt.all(steps[4] == dt.roll(field, (1, 1), axis=(0, 1)))
assert dt.all(steps[24] == dt.roll(field, (6, 6), axis=(0, 1)))
# %% [markdown]
# ## From soup
#
# Random fields settle: most cells die, what is left repeats itself. `dt.jit` notes what the function does once and then repeats it without
# asking Python; for a small field that is most of the time. The random numbers come from a generator with a seed: they are the
# same on every device, and so is everything after them.
# %%
step = dt.jit(generation)
draw = dt.random.default_rng(1)
soup = (draw.uniform((96, 192)) < 0.3).astype(dt.uint8)

alive, first = [], soup
for _ in range(300):
    alive.append(dt.sum(soup))
    soup = step(soup)
alive = dt.stack(alive)

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 2.6), width_ratios=(2, 1))
left.imshow(soup, cmap="Greys")
left.set_title("generation 300")
left.set_xticks([]), left.set_yticks([])
right.plot(alive / soup.size)
right.set_title("share of cells alive")
plt.show()


# %% [markdown]
# `imshow` and `plot` take tensors as they are. `alive` is a list of tensors that nobody has looked at until `dt.stack(alive)` is drawn; all that was
# pending was computed then.
#
# ## The same with slices
#
# `dt.roll` makes the field a torus. With a border of dead cells the shifts are slices, which are views: no memory moves. The next generation
# is written into the inner cells *of the same field*. It is safe: what the right side reads is read before the left side is written.
# %%
def live(field):
    inner = field[1:-1, 1:-1]
    rows, columns = field.shape
    around = dt.zeros_like(inner)
    for i, j in SHIFTS:
        around = around + field[1 + i : rows - 1 + i, 1 + j : columns - 1 + j]
    field[1:-1, 1:-1] = (around == 3) | ((around == 2) & (inner == 1))


bordered = dt.zeros((16, 16), dtype=dt.uint8)
bordered[1:4, 1:4] = glider
for _ in range(24):
    live(bordered)
assert dt.all(bordered == steps[24])  # it has not met the border
# %% [markdown]
# ## What to read next
#
# - [A heat equation](02_heat_equation.ipynb): the same slices with numbers that have a right answer.
# - [A custom kernel](06_custom_kernel.ipynb): the rule written for one cell.
# - [How capturing works](../jit.md): what `dt.jit` notes, and what it refuses.
# - `examples/life_roll.py` and `examples/life_slices.py`: both ways beside NumPy.
