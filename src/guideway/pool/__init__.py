"""Several models under one memory budget.

pool.py        `Pool`, `Lease`: apply the rules of scheduling.py in threads and event loops; `ModelSpec`, `ModelStatus`
scheduling.py  when models are loaded and unloaded, as a state machine that reads the time from an argument
parking.py     `PooledSession`: a session that is saved to disk while its model is not loaded
sizes.py       sizes in bytes: from texts such as "24GB", of a model before it is loaded, of this process
"""

from __future__ import annotations

from guideway.pool.parking import PooledSession
from guideway.pool.pool import Lease, ModelSpec, ModelStatus, Pool

__all__ = ["Lease", "ModelSpec", "ModelStatus", "Pool", "PooledSession"]
