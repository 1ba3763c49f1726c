"""Imported by a server of forks: loads the kernels of a training run before workers are forked."""

from tempfile import TemporaryDirectory

import dovetail as dt
import worker_programs

STEPS = 4
with TemporaryDirectory() as folder:
    dt.set_num_threads(1, "cpu")
    WEIGHTS = worker_programs.train_small_net(folder, STEPS)
