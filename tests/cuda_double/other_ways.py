"""A pytest plugin under which dovetail-cuda takes the ways of large launches for small ones too:
`-p cuda_double.other_ways`."""

from dovetail_cuda import ways

for limit in ("SHORT", "BUSY", "WIDE", "TILED"):
    assert getattr(ways, limit) > 0
    setattr(ways, limit, 0)
