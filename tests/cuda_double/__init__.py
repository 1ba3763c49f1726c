"""A test double of the CUDA driver and of NVRTC, for tests only.

`driver` and `nvrtc` stand in for the modules of those names in `cuda.bindings`. They execute CUDA C
on the host: they compile it with the system's C compiler, and `runtime.c` emulates threads, shared
memory, barriers and warp shuffles.

The double is as strict as the driver's rules allow. Memory starts filled with garbage. Work runs
late and in any legal order. Host and device addresses are disjoint. A fault leaves the context
unusable.

    driver.reset(memory=1 << 20)                  # a new machine
    driver.machine.refuse("cuMemAlloc", CUresult.CUDA_ERROR_OUT_OF_MEMORY, at=3)
    driver.machine.faults                         # descriptions of faults on the device

Run the conformance kit on it with:

    PYTHONPATH=tests python -m pytest -p cuda_double.plugin -p dovetail.testing.plugin \
        --dovetail-device=cuda --pyargs dovetail.testing
"""
