"""How much room the disk of a data directory has, for whoever starts or watches servers on it."""

from __future__ import annotations

from functools import partial

from rayapp.core.disk_space import MIB, DiskLimits, DiskSpace
from rayapp.core.settings.model import Settings
from rayapp.local.stack.paths import StackPaths
from rayapp.storage.files.disk import measured

# An empty mongod keeps 302 MiB and an empty engine 85 (measured); the rest is for memories and for
# the reserve.
NEW_STORE_MB = 1_000


def disk_of(paths: StackPaths, settings: Settings) -> DiskSpace:
    """The same rule as in the replicas, whatever runs."""
    data = settings.data
    limits = DiskLimits(warn_bytes=data.warn_free_bytes, min_bytes=data.min_free_bytes)
    return DiskSpace(str(paths.data), limits, partial(measured, paths.data))


def needed_mb(paths: StackPaths, settings: Settings) -> int:
    """What must be free for a start: a store that exists has its first files already."""
    if paths.mongo.is_dir() and any(paths.mongo.iterdir()):
        return min(NEW_STORE_MB, settings.data.min_free_bytes // MIB)
    return NEW_STORE_MB
