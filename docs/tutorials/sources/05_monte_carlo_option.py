# %% [markdown]
# # A Monte Carlo option, and its delta by gradient
#
# A *call* is the right to buy a share at a fixed price, the strike, on a fixed day. If the share is worth more then, it pays the difference; else
# nothing. What is the right worth today? The mean of what it pays, over all ways that the share may go, discounted to today.
#
# For the simplest case there is a formula, by Black and Scholes, so that everything below can be checked. The method needs no formula.
# %%
import math

import dovetail as dt
import matplotlib.pyplot as plt

plt.rcParams["figure.dpi"] = 84

spot, strike, rate, sigma, years = 100.0, 105.0, 0.02, 0.25, 1.0
# %% [markdown]
# ## Paths
#
# The logarithm of a share does a random walk. `default_rng(seed)` draws numbers that are the same on every device and for any number of threads.
# %%
draw = dt.random.default_rng(7)
days, shown = 250, 40
moves = draw.normal((shown, days)) * sigma * math.sqrt(years / days)
drift = (rate - sigma**2 / 2) * years / days
paths = spot * dt.exp(dt.cumulative_sum(moves + drift, axis=1))

fig, axis = plt.subplots(figsize=(7, 3))
axis.plot(paths.mT, lw=0.8)
axis.axhline(strike, color="k", ls="--")
axis.set_xlabel("day"), axis.set_ylabel("share")
plt.show()


# %% [markdown]
# ## The price
#
# This option looks at the last day only, so one normal number for each path is enough. A million of them:
# %%
def pays(spot, sigma, z):
    growth = (rate - sigma**2 / 2) * years + sigma * math.sqrt(years) * z
    return math.exp(-rate * years) * dt.maximum(spot * dt.exp(growth) - strike, 0.0)


z = draw.normal((1_000_000,))
paid = pays(spot, sigma, z)
price = dt.mean(paid)
error = dt.std(paid) / math.sqrt(z.size)
print(f"price {price:.4f} +- {error:.4f}")
# %% [markdown]
# `dt.explain` shows what would run: exponentials, payoff and mean share a kernel, which reads the random numbers once and keeps a sum for each
# part of them. A second, tiny one adds these up. Nothing else of a million elements is ever stored.
# %%
print(len(dt.explain(dt.mean(pays(spot, sigma, z))).launches), "launches")


# %% [markdown]
# The formula:
# %%
def normal(x):
    return 0.5 * (1 + math.erf(x / math.sqrt(2)))


d1 = (math.log(spot / strike) + (rate + sigma**2 / 2) * years) / (sigma * math.sqrt(years))
d2 = d1 - sigma * math.sqrt(years)
exact = spot * normal(d1) - strike * math.exp(-rate * years) * normal(d2)
print(
    f"by the formula {exact:.4f}: {abs(price.item() - exact) / error.item():.1f} standard errors off"
)
assert abs(price.item() - exact) < 4 * error.item()
# %% [markdown]
# ## Delta
#
# *Delta* says how much the price moves with the share: who has sold the option holds so many shares against it. *Vega* is the same of the
# volatility. Both are derivatives of a mean over a million paths; the gradient goes back through all of it.
#
# The payoff has a kink at the strike. A path that ends exactly there has no derivative, but there are none to speak of, and elsewhere the
# derivative of the mean is the mean of the derivatives.
# %%
s = dt.asarray(spot).requires_grad_()
v = dt.asarray(sigma).requires_grad_()
value = dt.mean(pays(s, v, z))
value.backward()

delta, vega = normal(d1), spot * math.sqrt(years / (2 * math.pi)) * math.exp(-(d1**2) / 2)
print("       Monte Carlo    formula")
print(f"delta  {s.grad.item():11.4f}  {delta:9.4f}")
print(f"vega   {v.grad.item():11.4f}  {vega:9.4f}")
assert abs(s.grad.item() - delta) < 0.005 and abs(v.grad.item() - vega) < 0.5
# %% [markdown]
# Taking the difference of two prices instead costs one more simulation for each number, and its error is divided by the small step. The gradient
# is exact for these paths.
#
# ## For many shares at once
#
# `dt.vmap` does for a list of spots what was written for one. The same random numbers serve all, so the curves are smooth.
# %%
few = z[:100_000]


def mean_price(spot):
    return dt.mean(pays(spot, sigma, few))


spots = dt.linspace(60, 150, 46)
prices = dt.vmap(mean_price)(spots)
deltas = dt.vmap(dt.func.grad(mean_price))(spots)

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 2.8))
left.plot(spots, prices)
left.plot(spots, dt.maximum(spots - strike, 0), "k--", lw=0.8)
left.set_title("price"), left.set_xlabel("share")
right.plot(spots, deltas)
right.set_title("delta"), right.set_xlabel("share")
plt.show()
assert dt.all(deltas[1:] >= deltas[:-1])
# %% [markdown]
# ## How the error shrinks
#
# With the square root of the number of paths: a hundred times the work for one more digit. This is the method, not the arithmetic: sums are
# taken in a tree whose rounding stays far below.
# %%
counts = [10**k for k in range(2, 7)]
off = [abs(dt.mean(paid[:k]).item() - exact) for k in counts]
expected = [dt.std(paid).item() / math.sqrt(k) for k in counts]
fig, axis = plt.subplots(figsize=(6, 2.8))
axis.loglog(counts, off, "o-", label="off by")
axis.loglog(counts, expected, "k--", label="standard error")
axis.set_xlabel("paths"), axis.legend()
plt.show()
# %% [markdown]
# ## What to read next
#
# - [Gradients](../autograd.md) and [transforms](../transforms.md): `dt.func.grad`, `dt.vmap` and how they nest.
# - [Distributions](../distributions.md): samples with gradients by their parameters.
# - `examples/black_scholes.py`: ten million paths beside NumPy.
