"""A pytest plugin that makes dovetail-cuda use the schedules of large launches for small ones.

Load it with `-p cuda_double.large_schedules`.
"""

from dovetail.ir import staging
from dovetail_cuda import schedule

for limit in (
    "THREAD_ELEMENTS_MAX",
    "COARSENED_POINTS_MIN",
    "COARSENED_COLUMNS_MIN",
    "JAMMED_POINTS_MIN",
    "STAGED_POINTS_MIN",
):
    assert getattr(schedule, limit) > 0
    setattr(schedule, limit, 0)
for limit in ("STAGED_SIDE_MIN", "STAGED_STEPS_MIN"):
    assert getattr(staging, limit) > 0
    setattr(staging, limit, 0)
