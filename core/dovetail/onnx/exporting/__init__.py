"""Export of graphs to ONNX: a table of functions that write each op, and the writer."""
