"""Benchmarks: how fast an epoch is, and what it depends on.

Each benchmark is a module with ``run(...)``, which returns a plain dictionary ready for JSON, and
``show(...)``, which prints it as a table. All of them run real queries on a real Spark, in temporary folders
that are removed at the end, also after an error or Ctrl-C.
"""
