"""Data to try and to measure with: the same for the same scale and seed.

One file per dataset, each with `facts(scale, seed)`, which yields the facts as columns, and
`DATASET`, which says which files they become; `write` puts these into a folder.

>>> from corollary.generate import clique
>>> [len(columns) for columns in clique.facts(10)]
[90]
"""

from corollary.generate import claros, clique, dag, lubm, skos, uobm
from corollary.generate.datasets import Dataset

DATASETS: dict[str, Dataset] = {
    module.DATASET.name: module.DATASET for module in (lubm, uobm, dag, clique, skos, claros)
}
