"""A test double of the CUDA driver and of NVRTC. For tests only; no device of dovetail's.

`driver` and `nvrtc` stand in for the modules of those names in `cuda.bindings`. They execute the
CUDA C that they are given: compiled for the host, with threads, shared memory, barriers and warp
shuffles emulated (`runtime.c`). They are as unkind as the real ones are allowed to be: memory comes
filled with garbage, work is done late and in any legal order, host and device addresses do not mix,
and a fault leaves the context unusable.

    driver.reset(memory=1 << 20)                  # a new machine
    driver.machine.refuse("cuMemAlloc", CUresult.CUDA_ERROR_OUT_OF_MEMORY, at=3)
    driver.machine.faults                         # what went wrong on the device, in words

The conformance kit on it:

    PYTHONPATH=tests python -m pytest -p cuda_double.plugin -p dovetail.testing.plugin \
        --dovetail-device=cuda --pyargs dovetail.testing
"""
