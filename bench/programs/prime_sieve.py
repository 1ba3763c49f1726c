"""Sieves: primes, totients, Moebius function, Goldbach counts (number theory; Hardy)."""

import numpy as np


def primes_up_to(n):
    sieve = np.ones(n + 1, dtype=bool)
    sieve[:2] = False
    for i in range(2, int(n**0.5) + 1):
        if sieve[i]:
            sieve[i * i :: i] = False
    return np.nonzero(sieve)[0]


def totients(n):
    phi = np.arange(n + 1)
    for p in range(2, n + 1):
        if phi[p] == p:
            phi[p::p] -= phi[p::p] // p
    return phi


def moebius(n, primes):
    mu = np.ones(n + 1, dtype=np.int8)
    for p in primes:
        if p > n:
            break
        mu[p::p] *= -1
        if p * p <= n:
            mu[p * p :: p * p] = 0
    return mu


def inputs():
    return 1500000, 12000


def run(n, m):
    primes = primes_up_to(n)
    gaps = np.diff(primes)
    phi = totients(m)
    mu = moebius(m, primes)
    pairs = np.convolve(np.bincount(primes[primes < 2000]), np.bincount(primes[primes < 2000]))
    coprime = np.mean(np.gcd.outer(np.arange(1, 300), np.arange(1, 300)) == 1)
    twins = np.count_nonzero(gaps == 2)
    return primes, gaps.max(), twins, phi, np.cumsum(mu, dtype=np.int64), pairs[::2], coprime


def main():
    return run(*inputs())
