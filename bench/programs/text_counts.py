"""Bags of words: tf-idf, cosine similarity, naive Bayes and topics by NMF (retrieval; Manning)."""

import numpy as np


def inputs():
    rng = np.random.default_rng(113)
    topics = rng.dirichlet(np.full(200, 0.05), 4)
    labels = rng.integers(0, 4, 300)
    counts = np.array([rng.multinomial(80, topics[k]) for k in labels])
    return counts, labels, rng.random((300, 4)), rng.random((4, 200))


def tf_idf(counts):
    tf = counts / counts.sum(axis=1, keepdims=True)
    df = np.count_nonzero(counts, axis=0)
    idf = np.log((1 + len(counts)) / (1 + df)) + 1
    X = tf * idf
    return X / np.linalg.norm(X, axis=1)[:, None]


def naive_bayes(train, labels, test):
    classes = np.unique(labels)
    log_prior = np.log([np.mean(labels == c) for c in classes])
    word_counts = np.array([train[labels == c].sum(axis=0) + 1 for c in classes])
    log_likelihood = np.log(word_counts / word_counts.sum(axis=1)[:, None])
    return classes[np.argmax(test @ log_likelihood.T + log_prior, axis=1)]


def nmf(X, W, H, iterations):
    W, H = W.copy(), H.copy()
    for _ in range(iterations):
        H *= (W.T @ X) / (W.T @ W @ H + 1e-10)
        W *= (X @ H.T) / (W @ H @ H.T + 1e-10)
    return W, H, np.linalg.norm(X - W @ H, "fro")


def run(counts, labels, W, H):
    X = tf_idf(counts)
    similarity = X @ X.T
    np.fill_diagonal(similarity, -1)
    nearest = similarity.argmax(axis=1)
    train = np.arange(len(counts)) % 3 != 0
    predicted = naive_bayes(counts[train], labels[train], counts[~train])
    W, H, error = nmf(X, W, H, 60)
    purity = np.mean(labels[nearest] == labels)
    return similarity.max(axis=1), purity, predicted, np.mean(predicted == labels[~train]), W, error


def main():
    return run(*inputs())
