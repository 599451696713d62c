"""Values of bulk jobs: which kinds there are, what a job is, what it is cut into, how far it is.
Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from rayapp.core.errors import InvalidInput
from rayapp.core.ids import USER_ID_PATTERN
from rayapp.memory.tiers import Tier, parse_tier

# Which bulk jobs exist and what each may be asked. Pure: a wrong request is refused by a sentence.
#
# The normal form of the parameters identifies a job (a job that was cut short is resumed by the
# next one of its kind with equal parameters), so a parameter that was not given is not in it.

REINDEX = "reindex"
DEFERRED = "deferred"
CONSISTENCY = "consistency_sweep"
DATAGOV = "datagov_ingest"
PROMOTION = "promotion"
# Points of one sampled sweep at most: the bound of the setting consistency.sample.
MAX_SAMPLE = 100_000

Check = Callable[[Any], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobKind:
    """One module of `jobs`. `params`: what it may be asked, each with the check of its value."""

    name: str
    params: Mapping[str, Check] = field(default_factory=lambda: MappingProxyType({}))


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def _tier(value: Any) -> str:
    tier = parse_tier(value) if isinstance(value, str) else None
    if tier is None:
        raise ValueError(f"is no tier; use one of {', '.join(Tier)}")
    return tier.value


def _user(value: Any) -> str:
    if not isinstance(value, str) or not USER_ID_PATTERN.fullmatch(value):
        raise ValueError("must be 1 to 128 characters of letters, digits and . _ : @ -")
    return value


def _time(value: Any) -> str:
    """Any ISO-8601 time as UTC, so that two ways to write one time are one parameter."""
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else None
        found = found and (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        found = None
    if found is None:
        raise ValueError("must be an ISO-8601 time such as 2026-05-01T09:30:00Z")
    return found.isoformat()


def _sample(value: Any) -> int:
    if type(value) is not int or not 1 <= value <= MAX_SAMPLE:
        raise ValueError(f"must be a whole number from 1 to {MAX_SAMPLE}")
    return value


def _switch(value: Any) -> str:
    if value not in ("auto", "never"):
        raise ValueError("must be `auto` or `never`")
    return str(value)


def _source(value: Any) -> str:
    # A path that came over the network is never opened; the command line takes paths.
    if value != "ckan":
        raise ValueError("must be `ckan`; a folder is set with datagov.source")
    return "ckan"


KINDS: Mapping[str, JobKind] = MappingProxyType(
    {
        kind.name: kind
        for kind in (
            JobKind(
                name=REINDEX,
                params={
                    "user_id": _user,
                    "tier": _tier,
                    "since": _time,
                    "rollback": _flag,
                    "drop_old": _flag,
                    "switch": _switch,
                },
            ),
            JobKind(name=DEFERRED, params={"user_id": _user}),
            JobKind(
                name=CONSISTENCY,
                params={"full": _flag, "sample": _sample, "repair": _flag, "quarantine": _flag},
            ),
            JobKind(name=DATAGOV, params={"source": _source}),
            JobKind(name=PROMOTION),
        )
    }
)


def lease_of(kind: str) -> str:
    """The lease whose holder drives a job of this kind."""
    return f"job:{kind}"


def known_kind(name: str) -> str:
    """`name`, if there is such a job. Raises InvalidInput with the list of kinds."""
    if name not in KINDS:
        raise InvalidInput(
            f"No job kind {name!r}; use one of {', '.join(KINDS)}.", details={"field": "kind"}
        )
    return name


def checked_params(kind: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters in their normal form; None and false are the same as not given.

    Raises:
        InvalidInput: no such kind, an unknown parameter, or a value that breaks its rule.
    """
    allowed = KINDS[known_kind(kind)].params
    checked: dict[str, Any] = {}
    for name, value in params.items():
        if name not in allowed:
            known = f"use {', '.join(allowed)}" if allowed else "it takes none"
            raise InvalidInput(
                f"A {kind} job has no parameter {name!r}; {known}.", details={"field": name}
            )
        if value is None:
            continue
        try:
            checked[name] = allowed[name](value)
        except ValueError as error:
            raise InvalidInput(f"{name}: {error}.", details={"field": name}) from None
    checked = {name: value for name, value in checked.items() if value is not False}
    _refuse_pairs(checked)
    return checked


def _refuse_pairs(params: Mapping[str, Any]) -> None:
    if "full" in params and "sample" in params:
        raise InvalidInput(
            "A full sweep takes no sample; send `full` or `sample`.", details={"field": "sample"}
        )
    if "quarantine" in params and "repair" not in params:
        raise InvalidInput(
            "quarantine keeps what a repair deletes; send `repair` too.",
            details={"field": "quarantine"},
        )
    if "rollback" in params and len(params) > 1:
        raise InvalidInput(
            "A rollback takes no other parameter; send `rollback` alone.",
            details={"field": "rollback"},
        )


class JobState(StrEnum):
    """`submitted` waits for a driver, the first or the next; the last three are final."""

    SUBMITTED = "submitted"
    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


FINAL_STATES = frozenset({JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED})


class JobWish(StrEnum):
    """What people ask of a job; its workers look at it after every step."""

    RUN = "run"
    PAUSE = "pause"
    CANCEL = "cancel"


class PartitionState(StrEnum):
    WAITING = "waiting"
    DONE = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """One independent share of a job. `payload` is plain JSON and says what the share is."""

    index: int
    payload: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a job will do.

    Attributes:
        total: records it expects to look at, for the progress bar.
        facts: what was decided once for the whole job (a collection's name, a watermark); plain
            JSON, stored with the job, so that a resumed job goes on with the same.
    """

    partitions: Sequence[Partition]
    total: int
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What one step of a partition did; the counts are of this step alone.

    Attributes:
        cursor: where the next step goes on, plain JSON; None when the partition is finished.
        done: records looked at.
        failed: records that could not be worked on.
        counts: further counts by name, added up over all steps of the job.
        samples: a few plain JSON values for the report.
    """

    cursor: Mapping[str, Any] | None
    done: int = 0
    failed: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    samples: Sequence[Any] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRow:
    """A stored partition with its checkpoint. `fence` is that of the driver it belongs to."""

    job_id: str
    index: int
    payload: Mapping[str, Any]
    state: PartitionState = PartitionState.WAITING
    cursor: Mapping[str, Any] | None = None
    done: int = 0
    failed: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    samples: Sequence[Any] = ()
    steps: int = 0
    fence: int = 0
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A stored job.

    Attributes:
        params: what was asked, plain JSON; with `kind` it says whether a job can be resumed.
        facts: of its plan; empty until it was planned.
        total, done, failed: records; `done` counts failed ones too. A plan only estimates the
            total, and stores that arrive meanwhile are looked at too: it is never below `done`.
        fence: of the driver that runs it; a driver of a lower one writes nothing.
        attempts: drivers that died, and the present one; one that stopped in order counts not.
        submission_id: of the Ray job that runs it.
        error: one sentence, when it failed.
        exit_code: of the driver that failed, so that whoever followed it ends with the same.
    """

    job_id: str
    kind: str
    params: Mapping[str, Any]
    created_at: datetime
    state: JobState = JobState.SUBMITTED
    wish: JobWish = JobWish.RUN
    planned: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict)
    total: int = 0
    done: int = 0
    failed: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    stage: str = ""
    report: Mapping[str, Any] | None = None
    error: str | None = None
    exit_code: int | None = None
    fence: int = 0
    attempts: int = 0
    submission_id: str | None = None
    requested_by: str = ""
    started_at: datetime | None = None
    updated_at: datetime | None = None
    finished_at: datetime | None = None

    def __post_init__(self) -> None:
        if self.done > self.total:
            object.__setattr__(self, "total", self.done)

    @property
    def final(self) -> bool:
        return self.state in FINAL_STATES


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """The end of a job: its report, and whether all of it was done (exit code 0 or 3)."""

    report: Mapping[str, Any]
    complete: bool = True


UUID_SPACE = 1 << 128
_UUID_TEXT = (8, 4, 4, 4, 12)


def point_ranges(parts: int) -> list[tuple[str | None, str | None]]:
    """`parts` equal ranges (after, until] of all point ids; None is an open end.

    Point ids are uuid5 values, so equal ranges hold about equally many of them, and both stores
    order their lower-case text as they order the values.
    """
    if parts < 1:
        raise ValueError("A job needs at least one partition.")
    bounds = [None, *(uuid_text(UUID_SPACE * n // parts - 1) for n in range(1, parts)), None]
    return list(pairwise(bounds))


def uuid_text(value: int) -> str:
    """`value`, 0 up to `UUID_SPACE` (not included), as the text of a point id."""
    digits, parts, start = f"{value:032x}", [], 0
    for size in _UUID_TEXT:
        parts.append(digits[start : start + size])
        start += size
    return "-".join(parts)
