"""Models as ONNX: written from captured functions, and read to run on any device."""

__all__: list[str] = []
