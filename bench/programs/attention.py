"""Multi-head self-attention and greedy decoding of a small transformer (neural networks)."""

import numpy as np


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def layer_norm(x, eps=1e-5):
    mean = np.mean(x, axis=-1, keepdims=True)
    variance = np.var(x, axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + eps)


def attention(x, w_qkv, w_out, heads):
    q, k, v = np.split(x @ w_qkv, 3, axis=-1)
    mask = (1 - np.tri(x.shape[0], dtype=x.dtype)) * np.float32(-1e10)
    outs = []
    for qh, kh, vh in zip(*(np.split(a, heads, axis=-1) for a in (q, k, v)), strict=True):
        outs.append(softmax(qh @ kh.T / np.sqrt(q.shape[-1] // heads) + mask) @ vh)
    return np.hstack(outs) @ w_out


def inputs():
    rng = np.random.default_rng(95)
    d, layers, vocabulary = 64, 3, 100
    weights = []
    for _ in range(layers):
        shapes = (d, 3 * d), (d, d), (d, 4 * d), (4 * d, d)
        weights.append([(rng.normal(size=s) / 8).astype(np.float32) for s in shapes])
    embedding = rng.normal(size=(vocabulary, d)).astype(np.float32)
    return rng.integers(0, vocabulary, 12), embedding, weights


def run(tokens, embedding, weights):
    ids = list(tokens)
    for _ in range(8):
        x = embedding[ids] + 0.1 * np.sin(np.arange(len(ids), dtype=np.float32))[:, None]
        for w_qkv, w_out, w_up, w_down in weights:
            x = x + attention(layer_norm(x), w_qkv, w_out, 4)
            x = x + gelu(layer_norm(x) @ w_up) @ w_down
        logits = layer_norm(x) @ embedding.T
        ids.append(int(np.argmax(logits[-1])))
    return logits.astype(np.float32), np.array(ids), x.dtype.itemsize


def main():
    return run(*inputs())
