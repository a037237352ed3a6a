"""evolve: a benchmark of facts and rules that change; `README.md` describes it."""
