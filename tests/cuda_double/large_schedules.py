"""A pytest plugin that makes dovetail-cuda use the schedules of large launches for small ones.

Load it with `-p cuda_double.large_schedules`.
"""

from dovetail_cuda import schedule

for limit in ("SHORT", "BUSY", "WIDE", "TILED"):
    assert getattr(schedule, limit) > 0
    setattr(schedule, limit, 0)
