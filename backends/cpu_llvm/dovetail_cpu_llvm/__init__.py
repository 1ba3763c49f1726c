"""dovetail on the host's CPU: kernels become machine code by LLVM, and run on all its cores."""

__version__ = "0.1.0"
