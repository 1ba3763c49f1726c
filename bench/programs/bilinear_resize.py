"""Bilinear resize and rotation of an RGB image by gathers (image processing, computer graphics)."""

import numpy as np


def bilinear(img, y, x):
    h, w = img.shape[:2]
    y = np.clip(y, 0, h - 1)
    x = np.clip(x, 0, w - 1)
    y0 = np.floor(y).astype(int)
    x0 = np.floor(x).astype(int)
    y1 = np.minimum(y0 + 1, h - 1)
    x1 = np.minimum(x0 + 1, w - 1)
    fy = (y - y0)[..., np.newaxis]
    fx = (x - x0)[..., np.newaxis]
    top = img[y0, x0] * (1 - fx) + img[y0, x1] * fx
    bottom = img[y1, x0] * (1 - fx) + img[y1, x1] * fx
    return top * (1 - fy) + bottom * fy


def resize(img, height, width):
    h, w = img.shape[:2]
    y = (np.arange(height) + 0.5) * h / height - 0.5
    x = (np.arange(width) + 0.5) * w / width - 0.5
    return bilinear(img, *np.meshgrid(y, x, indexing="ij"))


def rotate(img, degrees):
    h, w, _ = img.shape
    theta = np.deg2rad(degrees)
    R = np.array([[np.cos(theta), -np.sin(theta)], [np.sin(theta), np.cos(theta)]])
    yy, xx = np.indices((h, w))
    points = np.stack([yy - h / 2, xx - w / 2], axis=-1) @ R.T
    y, x = points[..., 0] + h / 2, points[..., 1] + w / 2
    out = bilinear(img, y, x)
    outside = (y < 0) | (y > h - 1) | (x < 0) | (x > w - 1)
    out[outside] = 0
    return out


def inputs():
    rng = np.random.default_rng(26)
    coarse = rng.integers(0, 256, size=(12, 16, 3)).astype(np.uint8)
    return (np.repeat(np.repeat(coarse, 16, axis=0), 16, axis=1),)


def run(img):
    big = resize(img, 240, 320)
    turned = rotate(big, 30.0)
    gray = turned @ np.array([0.299, 0.587, 0.114])
    return big[::10, ::10], gray.astype(np.float32), turned.max(axis=(0, 1))


def main():
    return run(*inputs())
