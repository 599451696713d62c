"""The service itself over HTTP: version, short health, disk space, and the probes."""

from operator import not_
from typing import Any, Literal

from pydantic import Field

from rayapp.wire.bases import Answer, absent


class BuildView(Answer):
    """What was built; `git_sha` is null outside a build that sets it."""

    git_sha: str | None = None
    node_env: str


class VersionAnswer(Answer):
    """Version of the service."""

    success: Literal[True] = True
    version: str
    build: BuildView


class SystemHealthBody(Answer):
    """Services by name, each with `ok` and `base_url`."""

    ok: bool
    warnings: tuple[str, ...]
    services: dict[str, dict[str, Any]]


class SystemHealthAnswer(Answer):
    """Short health for the settings page."""

    success: Literal[True] = True
    health: SystemHealthBody


class DiskView(Answer):
    """Disk of the data directory."""

    path: str
    total_bytes: int
    free_bytes: int
    used_bytes: int
    used_ratio: float


class DiskAnswer(Answer):
    """Disk space."""

    success: Literal[True] = True
    disk: DiskView


class AliveAnswer(Answer):
    """The process answers."""

    ok: Literal[True]


class ReadyAnswer(Answer):
    """Whether requests can be served, and why not."""

    ready: bool
    reasons: tuple[str, ...] = Field((), exclude_if=not_)
    blocked: bool | None = absent("Waiting alone will not help: a person has to act.")
