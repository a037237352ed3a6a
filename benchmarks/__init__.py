"""Benchmarks with peers: `python -m benchmarks [NAME]`.

Each benchmark is a module with a function that yields rows. Every case runs in a separate process
(`isolate`), after a small run that compiles code on first use. Times are the minimum of several
repetitions: wall time (`seconds`) and the CPU time of all threads (`cpu_seconds`). Peers run in the
same run, on the same data, and their results are compared; their `speedup` is the rate of the
columnar engine (derived facts per CPU second, one thread) divided by theirs.
"""
