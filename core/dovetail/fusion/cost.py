"""What planning weighs: how much is worth storing, cutting and trying again."""

from __future__ import annotations

REPEAT_LIMIT = 4  # a value repeated so often by broadcasting is stored if it costs over CHEAP
CHEAP = 8
NODE_LIMIT = 160  # values computed on the fly in one kernel; more are cut
COSTLY = 6  # what costs so much counts twice: compilers take 0.5 s for 20 sines, and 4 s for 60
ROWS_BUSY = 4  # rows per unit of the device's concurrency that keep it busy without splitting them
BLOCKS_BUSY = 16  # blocks of rows per unit of concurrency, where rows are cut
SMALL_ROWS = 1 << 15  # elements below which a reduction is not worth splitting
TWICE = 60  # what costs so much and is needed by two kernels is stored: 10 M normals, 70 ms, not 78
JOINS = 8  # kernels over a domain that a node may join: the latest ones
REFUSALS = 8  # after so many that would have made it too large, no more nodes may join a kernel
UNDONE = 8  # placements that may be undone, for each node of the graph, in all
PATIENCE = 8  # how often a node that could not be placed tries again to join a kernel
