"""Adler-32, CRC-32, Fletcher-16 and FNV-1a over arrays of bytes (coding; RFC 1950)."""

import numpy as np


def adler32_loop(data):
    a, b = 1, 0
    for byte in data:
        a = (a + int(byte)) % 65521
        b = (b + a) % 65521
    return b << 16 | a


def adler32(data):
    d = data.astype(np.int64)
    n = len(d)
    a = (1 + d.sum()) % 65521
    b = (n + np.sum(np.arange(n, 0, -1) * d)) % 65521
    return (b << 16) | a


def crc_table():
    c = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        c = np.where(c & 1, np.uint32(0xEDB88320) ^ (c >> 1), c >> 1)
    return c


def crc32(data, table):
    crc = np.uint32(0xFFFFFFFF)
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> np.uint32(8))
    return crc ^ np.uint32(0xFFFFFFFF)


def fletcher16(data):
    blocks = data.reshape(-1, 20).astype(np.uint32)
    first = second = np.uint32(0)
    for block in blocks:
        for value in block:
            first = (first + value) % 255
            second = (second + first) % 255
    return second << 8 | first


def inputs():
    return (np.random.default_rng(101).integers(0, 256, 12000).astype(np.uint8),)


def run(data):
    table = crc_table()
    rows = data.reshape(20, 600)
    sums = np.array([adler32(row) for row in rows])
    parity = np.bitwise_xor.reduce(rows, axis=0)
    bits = np.unpackbits(data).sum()
    return (
        adler32_loop(data),
        adler32(data),
        crc32(data, table),
        fletcher16(data),
        sums,
        parity,
        bits,
    )


def main():
    return run(*inputs())
