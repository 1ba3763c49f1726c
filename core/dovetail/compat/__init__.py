"""Names of other libraries: hints for what dovetail calls otherwise, and names of parameters."""
