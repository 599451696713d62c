"""Keeps Ray's logs when the short folder that holds its sockets goes away."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

from rayapp.core.errors import ConfigError
from rayapp.local.stack.paths import StackPaths

# Ray rotates its logs at 100 MB; one that grew this long repeats itself.
LARGEST_FILE_BYTES = 50 << 20


def keep_ray_logs(paths: StackPaths) -> Path | None:
    """Copy the logs of the last session to `<data>/logs/ray`, over the earlier copy.

    Returns:
        The folder; None when no session was left.

    Raises:
        ConfigError: they cannot be written; the originals are still there.
    """
    source = paths.ray_session_logs
    if not source.is_dir():
        return None
    part = paths.kept_ray_logs.with_name(".ray.part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        shutil.copytree(source, part, symlinks=True, ignore=_too_large)
        if paths.kept_ray_logs.exists():
            shutil.rmtree(paths.kept_ray_logs)
        part.rename(paths.kept_ray_logs)
    except (OSError, shutil.Error) as error:
        shutil.rmtree(part, ignore_errors=True)
        raise ConfigError(
            f"The logs in {source} cannot be kept ({str(error)[:200]}): free disk space, then "
            "`rayapp down` again."
        ) from None
    return paths.kept_ray_logs


def _too_large(folder: str, names: list[str]) -> set[str]:
    """Files above the limit, and what is neither file, folder nor link."""
    return {name for name in names if not _copied((Path(folder) / name).lstat())}


def _copied(info: os.stat_result) -> bool:
    if stat.S_ISREG(info.st_mode):
        return info.st_size <= LARGEST_FILE_BYTES
    return stat.S_ISDIR(info.st_mode) or stat.S_ISLNK(info.st_mode)
