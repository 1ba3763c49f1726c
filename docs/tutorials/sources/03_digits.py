# %% [markdown]
# # Digits: from k-means to a network
#
# 1,797 handwritten digits, 8 x 8 pixels each. First they are sorted without being told what they are; then with labels, by a straight line; then by
# a network. Each step is a few lines, and each is better than the one before.
#
# The digits come with scikit-learn: `pip install "dovetail-tensor[demo]"`.
# %%
import dovetail as dt
import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

plt.rcParams["figure.dpi"] = 84
nn, F = dt.nn, dt.nn.functional
# %%
data = load_digits()
x = dt.asarray(data.data, dtype=dt.float32) / 16
y = dt.asarray(data.target)
held_out = dt.arange(len(y)) % 5 == 4  # a fifth is for judging, never for learning
train_x, train_y, test_x, test_y = x[~held_out], y[~held_out], x[held_out], y[held_out]
print(train_x.shape, test_x.shape)
x[0].reshape((8, 8))


# %% [markdown]
# ## Without labels: k-means
#
# Ten centres; every digit belongs to the nearest; each centre moves to the mean of its digits; again. Distances of all digits from all centres are
# one expression: `(digits, 1, 64) - (10, 64)` broadcasts to `(digits, 10, 64)`, and the sum over the last axis is fused with it, so that this large
# tensor is never in memory.
# %%
def nearest(points, centres):
    return dt.argmin(dt.sum((points[:, None, :] - centres) ** 2, axis=-1), axis=-1)


order = dt.random.default_rng(3).permutation(len(train_y))
centres = train_x[order[:10]]
for _ in range(30):
    member = (nearest(train_x, centres)[:, None] == dt.arange(10)).astype(dt.float32)
    centres = (member.mT @ train_x) / dt.maximum(dt.sum(member, axis=0), 1)[:, None]

fig, axes = plt.subplots(1, 10, figsize=(9, 1.1))
for axis, centre in zip(axes, centres, strict=True):
    axis.imshow(centre.reshape((8, 8)), cmap="Greys")
    axis.axis("off")
plt.show()
# %% [markdown]
# The centres look like digits, though nobody said what a digit is. To judge them, each is named after the digit that most of its members are, by
# the labels of the training part:
# %%
counts = member.mT @ (train_y[:, None] == dt.arange(10)).astype(dt.float32)
names = dt.argmax(counts, axis=1)
results = {"k-means": dt.mean(names[nearest(test_x, centres)] == test_y).item()}
print(f"{results['k-means']:.1%} of the digits that were held out")


# %% [markdown]
# ## With labels: a straight line
#
# A score for each digit, linear in the pixels, trained by gradient descent. `dt.func.grad` makes a function that gives the gradient; it is called like
# the function itself.
# %%
def loss(weights, bias):
    return F.cross_entropy(train_x @ weights + bias, train_y)


slopes = dt.jit(dt.func.grad(loss, argnums=(0, 1)))
weights, bias = dt.zeros((64, 10)), dt.zeros(10)
for _ in range(200):
    dw, db = slopes(weights, bias)
    weights, bias = weights - 1.0 * dw, bias - 1.0 * db

results["linear"] = dt.mean(dt.argmax(test_x @ weights + bias, axis=1) == test_y).item()
print(f"loss {loss(weights, bias).item():.3f}, {results['linear']:.1%} right")
# %% [markdown]
# ## A network
#
# `dt.nn` has layers, `dt.optim` what trains them, with PyTorch's names. A step of training (forwards, backwards, the optimiser) is captured
# by `dt.jit` as one program.
# %%
dt.random.manual_seed(0)
model = nn.Sequential(
    nn.Unflatten(1, (1, 8, 8)),
    nn.Conv2d(1, 16, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(16 * 4 * 4, 64),
    nn.ReLU(),
    nn.Linear(64, 10),
)
optimizer = dt.optim.Adam(model.parameters(), lr=3e-3)
loader = dt.data.DataLoader(
    dt.data.TensorDataset(train_x, train_y), 64, shuffle=True, drop_last=True,
    generator=dt.random.default_rng(0),
)  # fmt: skip


@dt.jit
def train(pictures, labels):
    found = F.cross_entropy(model(pictures), labels)
    found.backward()
    optimizer.step()
    optimizer.zero_grad()
    return found.detach()


def accuracy():
    with dt.no_grad():
        return dt.mean(dt.argmax(model(test_x), axis=1) == test_y).item()


losses, right = [], []
for _ in range(12):
    losses.append(dt.mean(dt.stack([train(a, b) for a, b in loader])).item())
    right.append(accuracy())
results["network"] = right[-1]

fig, (a, b) = plt.subplots(1, 2, figsize=(8, 2.6))
a.semilogy(losses)
a.set_title("loss"), a.set_xlabel("epoch")
b.plot(right)
b.set_title("share right, held out"), b.set_xlabel("epoch")
plt.show()
# %% [markdown]
# ## Side by side
# %%
for name, share in results.items():
    print(f"{name:8} {share:6.1%}  {'#' * round(50 * share)}")
assert results["k-means"] < results["linear"] < results["network"]
# %% [markdown]
# And what the network gets wrong is hard for people, too:
# %%
with dt.no_grad():
    said = dt.argmax(model(test_x), axis=1)
wrong = dt.nonzero(said != test_y)[0][:8]
fig, axes = plt.subplots(1, 8, figsize=(9, 1.5))
for axis in axes:
    axis.axis("off")
for axis, i in zip(axes, wrong.tolist(), strict=False):
    axis.imshow(test_x[i].reshape((8, 8)), cmap="Greys")
    axis.set_title(f"{test_y[i].item()}, not {said[i].item()}", fontsize=9)
plt.show()
# %% [markdown]
# ## What to read next
#
# - [Layers](../layers.md) and [training](../training.md): checkpoints, schedules, loaders with workers.
# - [Gradients](../autograd.md): what `backward` and `dt.grad` have in common.
# - `dovetail demo train`: the whole run on every device that you have, to the same bits.
# - `examples/classifier.py`: beside PyTorch.
