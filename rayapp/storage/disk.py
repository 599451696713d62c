"""Room on a disk. Apart from all else, because processes without rules ask for it."""

import shutil
from pathlib import Path


def measured(folder: Path) -> tuple[int, int]:
    """(total, free) bytes of the disk of the folder, or of the nearest one above it that exists."""
    existing = next(one for one in (folder, *folder.parents) if one.exists())
    usage = shutil.disk_usage(existing)
    return usage.total, usage.free
