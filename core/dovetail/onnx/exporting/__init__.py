"""Functions as ONNX: the table of what each op of a graph is written as, and who writes it."""
