"""Benchmark data, reproducible from a scale and a seed.

One module per dataset: `facts(scale, seed)` yields the facts as columns, and `DATASET` describes
its files, which `write` puts into a folder.

>>> from corollary.generate import clique
>>> [len(columns) for columns in clique.facts(10)]
[90]
"""

from corollary.generate import claros, clique, dag, lubm, skos, uobm
from corollary.generate.datasets import Dataset

DATASETS: dict[str, Dataset] = {
    module.DATASET.name: module.DATASET for module in (lubm, uobm, dag, clique, skos, claros)
}
