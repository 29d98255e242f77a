"""Several models under one memory budget.

pool.py        `Pool`, `Lease`: threads and event loops around the rules; `ModelSpec`, `ModelStatus`
scheduling.py  the rules as a state machine on an injected clock
parking.py     `PooledSession`: a session that is saved to disk while its model is not loaded
sizes.py       numbers of bytes: of a budget, of a model before it is loaded, of this process
"""

from __future__ import annotations

from guideway.pool.parking import PooledSession
from guideway.pool.pool import Lease, ModelSpec, ModelStatus, Pool

__all__ = ["Lease", "ModelSpec", "ModelStatus", "Pool", "PooledSession"]
