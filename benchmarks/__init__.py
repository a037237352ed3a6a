"""Benchmarks with peers: `python -m benchmarks [NAME]`.

Each benchmark is a file with a function that yields rows. A case that is measured runs in a process
of its own (`isolate`), after a small run that compiles what is compiled on first use. Times are the
least of several repetitions: wall time (`seconds`) and the processor time of all threads
(`cpu_seconds`). Peers run in the same run, on the same data, and their results are compared; their
`speedup` is the rate of the columnar engine (derived facts per processor second, one thread)
divided by theirs.
"""
