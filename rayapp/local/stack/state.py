"""`<data>/run/state.json`: what a running stack consists of, for whoever attaches or stops it."""

import contextlib
from typing import Literal

from pydantic import BaseModel, Field, ValidationError

from rayapp.core.errors import ConfigError
from rayapp.local.stack.paths import StackPaths, write_private
from rayapp.local.stack.processes import ProcessRef

APPLICATION = "application"  # the last step, after the servers
Phase = Literal["starting", "ready", "failed", "stopping"]


class Step(BaseModel):
    """One finished step of the start; seconds since its process was started."""

    name: str
    seconds: float


class StackState(BaseModel):
    stack_id: str
    phase: Phase = "starting"
    supervisor: ProcessRef
    children: list[ProcessRef] = []
    restarts: dict[str, int] = {}
    steps: list[Step] = []
    # Name of the server, or `application`, whose start is being waited for.
    awaited: str = ""
    ports: dict[str, int] = {}
    versions: dict[str, str] = {}
    http_url: str = ""
    dashboard_url: str = ""
    settings_sha256: str = ""
    # What a job, a replica or a shell needs to attach: MONGODB_URI, RAY_ADDRESS, ...
    environment: dict[str, str] = Field(default_factory=dict)
    error: str = ""
    log: str = ""

    @property
    def running(self) -> bool:
        return self.supervisor.find() is not None

    def living(self) -> list[ProcessRef]:
        return [ref for ref in (self.supervisor, *self.children) if ref.find() is not None]


def read_state(paths: StackPaths) -> StackState | None:
    """The state, or None when this data directory has no stack.

    Raises ConfigError: the file is there but cannot be read.
    """
    try:
        return StackState.model_validate_json(paths.state.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigError(
            f"{paths.state} cannot be read ({error.strerror}): use the account that ran "
            "`rayapp up`, or another --data-dir."
        ) from None
    except ValidationError as error:
        raise ConfigError(
            f"{paths.state} cannot be read ({error.error_count()} errors): run `rayapp down`."
        ) from None


def write_state(paths: StackPaths, state: StackState) -> None:
    write_private(paths.state, state.model_dump_json(indent=1))


def remove_state(paths: StackPaths) -> None:
    """Forget the stack: state, settings (they hold secrets) and token; ports are remembered."""
    for path in (paths.state, paths.settings, paths.token, paths.deploy_phase):
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
