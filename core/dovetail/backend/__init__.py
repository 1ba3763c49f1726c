"""The interface of backends (`interface`), and the interpreter of kernels (`reference`).

Also the services around every backend: streams and events, deferred errors of bounds checks
(`faults`), and the cache of compiled kernels on disk.
"""
