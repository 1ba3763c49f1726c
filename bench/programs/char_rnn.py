"""Character recurrent network with backpropagation through time (neural networks; Karpathy)."""

import numpy as np

TEXT = "hello world, the rain in spain stays mainly in the plain. "


def inputs():
    chars = sorted(set(TEXT))
    data = np.array([chars.index(c) for c in TEXT])
    rng = np.random.default_rng(90)
    v, h = len(chars), 48
    Wxh, Whh, Why = (0.1 * rng.standard_normal(s) for s in ((h, v), (h, h), (v, h)))
    return data, Wxh, Whh, Why


def loss_and_gradients(x, target, Wxh, Whh, Why, bh, by, h0):
    hs, ps = {-1: h0}, {}
    loss = 0.0
    for t in range(len(x)):
        hs[t] = np.tanh(Wxh[:, x[t]] + Whh @ hs[t - 1] + bh)
        y = Why @ hs[t] + by
        p = np.exp(y - np.max(y))
        ps[t] = p / np.sum(p)
        loss += -np.log(ps[t][target[t]])
    grads = [np.zeros_like(p) for p in (Wxh, Whh, Why, bh, by)]
    dhnext = np.zeros_like(h0)
    for t in reversed(range(len(x))):
        dy = ps[t].copy()
        dy[target[t]] -= 1
        grads[2] += np.outer(dy, hs[t])
        grads[4] += dy
        draw = (1 - hs[t] * hs[t]) * (Why.T @ dy + dhnext)
        grads[0][:, x[t]] += draw
        grads[1] += np.outer(draw, hs[t - 1])
        grads[3] += draw
        dhnext = Whh.T @ draw
    for g in grads:
        np.clip(g, -5, 5, out=g)
    return loss, grads, hs[len(x) - 1]


def run(data, Wxh, Whh, Why):
    params = [Wxh.copy(), Whh.copy(), Why.copy(), np.zeros(len(Whh)), np.zeros(len(Why))]
    memory = [np.zeros_like(p) for p in params]
    h = np.zeros(len(Whh))
    losses = []
    for step in range(24):
        p = step * 16 % (len(data) - 17)
        loss, grads, h = loss_and_gradients(data[p : p + 16], data[p + 1 : p + 17], *params, h)
        losses.append(loss)
        for param, grad, mem in zip(params, grads, memory, strict=True):
            mem += grad * grad
            param += -0.02 * grad / np.sqrt(mem + 1e-8)
    return np.array(losses), params[2], h


def main():
    return run(*inputs())
