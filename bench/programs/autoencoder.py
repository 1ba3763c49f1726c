"""Denoising autoencoder trained by Adam in minibatches (neural networks; Vincent et al., 2008)."""

import numpy as np


class Adam:
    def __init__(self, params, lr=3e-3, beta1=0.9, beta2=0.999):
        self.params, self.lr, self.beta1, self.beta2 = params, lr, beta1, beta2
        self.m = [np.zeros_like(p) for p in params]
        self.v = [np.zeros_like(p) for p in params]
        self.t = 0

    def step(self, grads):
        self.t += 1
        scale = self.lr * np.sqrt(1 - self.beta2**self.t) / (1 - self.beta1**self.t)
        for p, g, m, v in zip(self.params, grads, self.m, self.v, strict=True):
            m *= self.beta1
            m += (1 - self.beta1) * g
            v *= self.beta2
            v += (1 - self.beta2) * g**2
            p -= scale * m / (np.sqrt(v) + 1e-8)


def inputs():
    rng = np.random.default_rng(92)
    codes = rng.normal(size=(512, 6))
    data = np.tanh(codes @ rng.normal(size=(6, 64)))
    return data, rng.normal(size=(64, 24)) * 0.15, rng.normal(size=(24, 64)) * 0.15


def run(data, W1, W2):
    rng = np.random.default_rng(93)
    W1, W2 = W1.copy(), W2.copy()
    b1, b2 = np.zeros(24), np.zeros(64)
    optimizer = Adam([W1, b1, W2, b2])
    losses = []
    for _epoch in range(10):
        order = rng.permutation(len(data))
        total = 0.0
        for start in range(0, len(data), 64):
            x = data[order[start : start + 64]]
            noisy = x * (rng.random(x.shape) > 0.2)
            hidden = np.tanh(noisy @ W1 + b1)
            output = hidden @ W2 + b2
            error = output - x
            total += np.sum(error**2)
            dout = 2 * error / x.shape[0]
            dhid = (dout @ W2.T) * (1 - hidden**2)
            optimizer.step([noisy.T @ dhid, dhid.sum(0), hidden.T @ dout, dout.sum(0)])
        losses.append(total / data.size)
    code = np.tanh(data @ W1 + b1)
    return np.array(losses), code.std(axis=0), W1, b2


def main():
    return run(*inputs())
