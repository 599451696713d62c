"""Which bulk jobs exist and what each may be asked. Pure: a wrong request is refused by a sentence.

The normal form of the parameters identifies a job (a job that was cut short is resumed by the next
one of its kind with equal parameters), so a parameter that was not given is not in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from rayapp.core.errors import InvalidInput
from rayapp.core.ids import USER_ID_PATTERN
from rayapp.memory.tiers import Tier, parse_tier

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
