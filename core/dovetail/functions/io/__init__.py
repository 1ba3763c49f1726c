"""Files, pickles, copies between devices, and memory shared with other libraries."""
