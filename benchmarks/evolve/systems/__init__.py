"""Programs that speak the protocol: `python -m benchmarks.evolve.systems.NAME`."""
