"""What a backend is (`interface`), and the one that interprets kernels (`reference`).

Also what every backend is surrounded by: streams and events, indices found bad by a device that is
still at work (`faults`), and the cache of compiled kernels on disk.
"""
