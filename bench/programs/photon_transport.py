"""Monte Carlo transport of photons in a slab with absorption (radiation transport; Lux)."""

import numpy as np


def inputs():
    return 80000, 4.0, 0.9


def run(photons, depth, albedo):
    rng = np.random.default_rng(5)
    z = np.zeros(photons)
    mu = np.ones(photons)
    weight = np.ones(photons)
    absorbed = np.zeros(20)
    reflected = transmitted = 0.0
    scatterings = 0
    while z.size > 0 and scatterings < 200:
        z = z - mu * np.log(1 - rng.random(z.size)) * 1.0
        back, through = z < 0, z > depth
        reflected += weight[back].sum()
        transmitted += weight[through].sum()
        inside = ~(back | through)
        z, weight = z[inside], weight[inside]
        bins = np.minimum((z / depth * 20).astype(int), 19)
        np.add.at(absorbed, bins, (1 - albedo) * weight)
        weight = weight * albedo
        mu = 2 * rng.random(z.size) - 1
        small = weight < 0.05
        survive = rng.random(z.size) < 0.5
        weight[small & survive] *= 2
        keep = ~small | survive
        z, mu, weight = z[keep], mu[keep], weight[keep]
        scatterings += 1
    return absorbed / photons, reflected / photons, transmitted / photons, scatterings


def main():
    return run(*inputs())
