"""Ray tracing of spheres with shadows over a checkered floor (computer graphics; Whitted)."""

import numpy as np


def normalize(v):
    return v / np.linalg.norm(v, axis=-1, keepdims=True)


def intersect_sphere(O, D, centre, radius):
    OC = O - centre
    b = 2 * np.sum(D * OC, axis=-1)
    c = np.sum(OC * OC, axis=-1) - radius**2
    disc = b**2 - 4 * c
    sq = np.sqrt(np.maximum(0, disc))
    h0, h1 = (-b - sq) / 2, (-b + sq) / 2
    h = np.where((h0 > 1e-4) & (h0 < h1), h0, h1)
    return np.where((disc > 0) & (h > 1e-4), h, np.inf)


def intersect_floor(O, D):
    with np.errstate(divide="ignore", invalid="ignore"):
        t = -(O[..., 1] + 0.5) / D[..., 1]
    return np.where(t > 1e-4, t, np.inf)


def inputs():
    centres = np.array([[0.75, 0.1, 1.0], [-0.75, 0.1, 2.25], [-2.75, 0.1, 3.5]])
    colours = np.array([[0.1, 0.1, 0.9], [0.6, 0.2, 0.5], [1.0, 0.57, 0.18]])
    return centres, np.full(3, 0.6), colours, 160, 120


def run(centres, radii, colours, width, height):
    light = np.array([5.0, 5.0, -10.0])
    x, y = np.meshgrid(np.linspace(-1, 1, width), np.linspace(0.8, -0.6, height))
    D = normalize(np.stack([x, y, np.ones_like(x)], axis=-1))
    O = np.broadcast_to(np.array([0.0, 0.35, -1.0]), D.shape)
    hits = [intersect_sphere(O, D, c, r) for c, r in zip(centres, radii, strict=True)]
    hits.append(intersect_floor(O, D))
    distances = np.array(hits)
    nearest = distances.min(axis=0)
    which = distances.argmin(axis=0)
    image = np.zeros((height, width, 3))
    for k in range(4):
        mask = (which == k) & np.isfinite(nearest)
        M = O[mask] + D[mask] * nearest[mask][:, None]
        N = normalize(M - centres[k]) if k < 3 else np.tile([0.0, 1.0, 0.0], (len(M), 1))
        L = normalize(light - M)
        shadow = np.zeros(len(M), dtype=bool)
        for j in range(3):
            if j != k:
                shadow |= np.isfinite(intersect_sphere(M + N * 1e-3, L, centres[j], radii[j]))
        colour = colours[k] if k < 3 else np.ones(3)
        if k == 3:
            checker = ((M[:, 0] * 2).astype(int) % 2) == ((M[:, 2] * 2).astype(int) % 2)
            colour = np.where(checker[:, None], 1.0, 0.3) * colour
        H = normalize(L - D[mask])
        diffuse = np.maximum(np.sum(N * L, axis=1), 0) * ~shadow
        specular = np.where(shadow, 0, np.clip(np.sum(N * H, axis=1), 0, 1) ** 50)
        image[mask] = 0.05 + diffuse[:, None] * colour + specular[:, None]
    image = np.clip(image, 0, 1)
    return image, np.bincount(which.ravel()), image.mean(axis=(0, 1))


def main():
    return run(*inputs())
