"""All errors that dovetail raises: those of users, and internal ones (`InternalError`).

A user's error is also the Python built-in that its caller expects, names the op with the shapes,
dtypes and devices in question, and ends with a way out.
"""

from __future__ import annotations

__all__ = [
    "AnomalyError",
    "ArgumentError",
    "ArgumentTypeError",
    "AxisError",
    "CaptureError",
    "CompileError",
    "DTypeError",
    "DeviceError",
    "DovetailError",
    "DovetailWarning",
    "FallbackError",
    "GradientError",
    "InternalError",
    "KernelError",
    "LayoutError",
    "LinAlgError",
    "OutOfMemoryError",
    "OutOfRangeError",
    "PluginError",
    "ReadOnlyError",
    "ShapeError",
    "SharingError",
    "SlowDeviceWarning",
    "TransformError",
    "UnavailableError",
    "UnknownFunctionError",
    "UnsupportedError",
    "ValueOverflowError",
]


class DovetailError(Exception):
    """The base of every error raised on purpose by dovetail and its plugins."""


class DovetailWarning(UserWarning):
    """A problem outside of the program that does not stop dovetail.

    Examples: a variable of the environment that makes no sense, a folder that others can write.
    """


class SlowDeviceWarning(DovetailWarning):
    """No fast backend is installed, so that the interpreter is the default device.

    It is given once per process, with the command that installs one.
    """


class ShapeError(DovetailError, ValueError):
    """Shapes do not fit the op."""


class ArgumentError(DovetailError, ValueError):
    """A value that is neither shape nor dtype does not fit the op."""


class ArgumentTypeError(ArgumentError, TypeError):
    """A parameter got a value of a kind that it does not take: an axis that is no int."""


class DTypeError(DovetailError, TypeError):
    """A dtype does not fit the op, or two cannot be combined."""


class UnknownFunctionError(DTypeError):
    """A function of NumPy that dovetail lacks, or a parameter of one, got a tensor."""


class SharingError(DovetailError, BufferError):
    """Memory cannot be shared with another library as it was asked for."""


class DeviceError(DovetailError, ValueError):
    """Operands live on different devices, or a device is unknown."""


class LayoutError(DovetailError, TypeError):
    """An op has no meaning for this layout."""


class LinAlgError(DovetailError, ValueError):
    """A matrix has no such inverse or factors; the message says which one of a batch."""


class AxisError(DovetailError, IndexError, ValueError):
    """An axis is out of range or named twice."""


class OutOfRangeError(DovetailError, IndexError):
    """An index lies outside its dimension."""


class ReadOnlyError(DovetailError, ValueError):
    """A write to memory that must not, or cannot sensibly, be written."""


class ValueOverflowError(DovetailError, OverflowError):
    """A Python number does not fit the dtype."""


class OutOfMemoryError(DovetailError, MemoryError):
    """The device refused memory, after everything that could be released was."""


class GradientError(DovetailError, RuntimeError):
    """A gradient cannot be computed: no path leads there, or a saved value is gone."""


class AnomalyError(DovetailError, FloatingPointError):
    """A NaN, or an infinity, was made of finite values, while `dt.debug_nans` looks for it.

    `dt.autograd.detect_anomaly` raises it, too, for NaNs alone.
    """


class FallbackError(DovetailError, RuntimeError):
    """Work was about to run on another device than the user chose."""


class PluginError(DovetailError, RuntimeError):
    """A plugin is broken, blocked, in conflict or of another interface version."""


class UnavailableError(PluginError, DeviceError):
    """A device is known, but cannot be had on this machine; the message has reason and mend."""


class CaptureError(DovetailError, RuntimeError):
    """A function cannot be captured, or a captured one not be replayed; the message says why."""


class TransformError(DovetailError, RuntimeError):
    """A function cannot be transformed: under `dt.vmap`, it reads one example's value."""


class CompileError(DovetailError, RuntimeError):
    """A backend's compiler refused a kernel; the message holds the kernel and its log."""


class KernelError(DovetailError, SyntaxError):
    """A user's kernel says what kernels cannot; the message shows the user's line."""


class UnsupportedError(DovetailError, NotImplementedError):
    """A part of the standard that a later version brings; the message says which."""


class InternalError(DovetailError, AssertionError):
    """A fault of dovetail. The message prints what is needed for a report."""

    def __init__(self, what: str, evidence: object = "") -> None:
        text = (
            f"{what}\nThis is a bug in dovetail: please report it with the text below.\n{evidence}"
        )
        super().__init__(text)


def process_memory_error(what: str) -> DTypeError:
    """Build the DTypeError for an attempt to pickle or copy memory of this process."""
    return DTypeError(
        f"pickle, copy: {what} refers to memory of this process; copy or send a tensor instead"
    )


def __dir__() -> list[str]:
    return __all__
