"""The logger of the library: transactions and opened stores at level INFO.

>>> LOGGER.name
'corollary'
"""

from __future__ import annotations

import logging

LOGGER = logging.getLogger("corollary")
LOGGER.addHandler(logging.NullHandler())  # silent unless the application configures logging
