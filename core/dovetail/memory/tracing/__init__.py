"""Records of an allocator's memory, for people and for replays.

`stacktrace` finds the user's line, and `trace` is the timeline of events. `snapshot` is both as
JSON, `html_report` a page of it, and `replay` repeats its allocations on any allocator.
"""
