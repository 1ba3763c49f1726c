"""Butterworth and notch filters in the frequency domain (image processing; Gonzalez, 4)."""

import numpy as np


def distance(shape):
    rows, cols = shape
    v = np.fft.fftfreq(rows)[:, None]
    u = np.fft.fftfreq(cols)[None, :]
    return np.sqrt(u * u + v * v)


def butterworth(shape, cutoff, order):
    return 1.0 / (1.0 + (distance(shape) / cutoff) ** (2 * order))


def notch(shape, centres, radius):
    mask = np.ones(shape)
    v, u = np.meshgrid(np.fft.fftfreq(shape[0]), np.fft.fftfreq(shape[1]), indexing="ij")
    for fv, fu in centres:
        for sign in (1, -1):
            mask[(v - sign * fv) ** 2 + (u - sign * fu) ** 2 < radius**2] = 0
    return mask


def inputs():
    rng = np.random.default_rng(22)
    img = np.zeros((256, 320))
    img[60:190, 90:230] = 1.0
    y, x = np.indices(img.shape)
    return (
        img + 0.3 * np.sin(2 * np.pi * (0.125 * y + 0.2 * x)) + 0.05 * rng.normal(size=img.shape),
    )


def run(img):
    F = np.fft.fft2(img)
    cleaned = np.fft.ifft2(F * notch(img.shape, [(0.125, 0.2)], 0.01)).real
    low = np.real(np.fft.ifft2(np.fft.fft2(cleaned) * butterworth(img.shape, 0.08, 2)))
    high = img - low
    power = np.log1p(np.abs(np.fft.fftshift(F)) ** 2)
    peak = np.max(np.abs(F)[distance(img.shape) > 0.1])
    return cleaned, low, high.std(), power.mean(axis=0), peak


def main():
    return run(*inputs())
