"""What each kind of bulk job may be asked: a model per kind. The options of its command line, the
check of a request and the stored parameters come from it. Pure: a wrong request is refused by a
sentence.

The normal form of the parameters identifies a job (a job that was cut short is resumed by the
next one of its kind with equal parameters), so a parameter that was not given is not in it.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, ValidationInfo

from rayapp.core.errors import InvalidInput
from rayapp.core.ids import OWNER_ID_PATTERN
from rayapp.memory.tiers import Tier, parse_tier

REINDEX = "reindex"
DEFERRED = "deferred"
CONSISTENCY = "consistency_sweep"
DATAGOV = "datagov_ingest"
PROMOTION = "promotion"
DOCUMENTS = "documents_ingest"
PARQUET = "export_parquet"
UNDERSTAND = "understand"
# Points of one sampled sweep that a request asks for at most: the bound of consistency.sample.
MAX_SAMPLE = 100_000
CKAN = "ckan"
# The whole catalogue takes an idle indexer a few seconds; a busy one goes on after the job.
INDEX_WAIT_S = 120.0


class JobParams(BaseModel):
    """Parameters of one kind. None and false are the same as not given.

    The extras of a field are for the command line: its `flag` where that is not its name,
    `metavar`, `choices`, `least`, `default` (given, it is not stored), `group` (title and text),
    and `either`, one of which excludes the others. `local`: no request may name it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    def refuse_pairs(self, *, local: bool) -> None:
        """Raise InvalidInput for parameters that do not go together; `local`: of a command."""

    def stored(self) -> dict[str, Any]:
        return {name: value for name, value in self if value is not None and value is not False}


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
    if not isinstance(value, str) or not OWNER_ID_PATTERN.fullmatch(value):
        raise ValueError(
            "must be 1 to 128 characters of letters, digits and . _ : @ -, of a tenant `org/user`"
        )
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


def _is_local(info: ValidationInfo) -> bool:
    """Whether a command line asks, and no request."""
    return bool(info.context and info.context["local"])


def _sample(value: Any, info: ValidationInfo) -> int:
    most = None if _is_local(info) else MAX_SAMPLE
    if type(value) is not int or value < 1 or (most is not None and value > most):
        raise ValueError(f"must be a whole number from 1 to {MAX_SAMPLE}")
    return value


def _switch(value: Any) -> str:
    if value not in ("auto", "never"):
        raise ValueError("must be `auto` or `never`")
    return str(value)


def _source(value: Any, info: ValidationInfo) -> str:
    if value == CKAN:
        return CKAN
    # A path that came over the network is never opened; the command line takes paths, and keeps
    # them whole, because workers run elsewhere.
    if not _is_local(info):
        raise ValueError("must be `ckan`; a folder is set with datagov.source")
    return _folder(value)


def _folder(value: Any) -> str:
    return str(Path(value).expanduser().resolve())


def _option(text: str, **extra: Any) -> Any:
    """A field that need not be given, with its extras."""
    return Field(None, description=text, json_schema_extra=extra)


Flag = Annotated[bool, BeforeValidator(_flag)] | None
User = Annotated[str, BeforeValidator(_user)] | None
AGAIN = ["embed again", "Items whose vectors are made anew even where the old ones fit."]


class ReindexParams(JobParams):
    user_id: User = _option("Items of this user.", flag="--user", metavar="ID", group=AGAIN)
    tier: Annotated[str, BeforeValidator(_tier)] | None = _option(
        "Items of this tier.", choices=[tier.value for tier in Tier], group=AGAIN
    )
    since: Annotated[str, BeforeValidator(_time)] | None = _option(
        "Items changed since, ISO-8601.", metavar="TIME", group=AGAIN
    )
    rollback: Flag = _option("Go back to the collection before the last reindex.")
    drop_old: Flag = _option(
        "Delete all older collections after the switch: there is no way back then."
    )
    switch: Annotated[str, BeforeValidator(_switch)] | None = _option(
        "auto: move to the new index when it is proved, unless a service still runs with another "
        "model; never: fill and prove only. The same command without it, or a restart of the "
        "service with the new model, then moves to what was filled.",
        choices=["auto", "never"],
        default="auto",
    )

    def refuse_pairs(self, *, local: bool) -> None:
        if self.rollback and len(self.stored()) > 1:
            request = "A rollback takes no other parameter; send `rollback` alone."
            command = "--rollback goes alone: leave the other options out."
            raise InvalidInput(command if local else request, details={"field": "rollback"})


class DeferredParams(JobParams):
    user_id: User = _option("Only the items of this user.", flag="--user", metavar="ID")


class SweepParams(JobParams):
    full: Flag = _option("Look at everything (the default).", either=True)
    sample: Annotated[int, BeforeValidator(_sample)] | None = _option(
        "Look at N ids, from a random one on.", metavar="N", least=1, either=True
    )
    repair: Flag = _option("Write, delete or correct points.")
    quarantine: Flag = _option(
        "With --repair: keep whole points aside for 30 days before they are deleted."
    )

    def refuse_pairs(self, *, local: bool) -> None:
        if self.full and self.sample is not None:
            raise InvalidInput(
                "A full sweep takes no sample; send `full` or `sample`.",
                details={"field": "sample"},
            )
        if self.quarantine and not self.repair:
            request = "quarantine keeps what a repair deletes; send `repair` too."
            command = "--quarantine keeps what a repair deletes: add --repair."
            raise InvalidInput(command if local else request, details={"field": "quarantine"})


class DatagovParams(JobParams):
    source: Annotated[str, BeforeValidator(_source)] | None = _option(
        "Folder of the catalogue, or 'ckan'; the setting datagov.source when not given."
    )
    offline: Flag = _option(
        "Use what an earlier run kept; read neither folder nor site.", local=True
    )
    index_wait_s: Annotated[float, BeforeValidator(lambda value: max(0.0, value))] | None = _option(
        f"Wait so long for the indexer before the report ({INDEX_WAIT_S:g}).",
        flag="--index-wait",
        metavar="SECONDS",
        local=True,
    )


class DocumentsParams(JobParams):
    """Of a command line alone: nobody names a folder over the network."""

    folder: Annotated[str, BeforeValidator(_folder)] | None = _option(
        "Folder of the files, with those below it; the same path on every node.",
        metavar="DIR",
        local=True,
    )
    user_id: User = _option("Whose documents they become.", flag="--user", metavar="ID", local=True)
    author: str | None = _option("Who wrote them.", local=True)

    def refuse_pairs(self, *, local: bool) -> None:
        if not local:
            raise InvalidInput(
                "Documents are taken in by the command line: documents_ingest.",
                details={"field": "kind"},
            )
        if self.folder is None or self.user_id is None:
            raise InvalidInput("--folder and --user are needed: whose documents are in which one?")


class UnderstandParams(JobParams):
    user_id: User = _option("Memories of this user.", flag="--user", metavar="ID")
    again: Flag = _option("Also what was understood already, as after a change of the tables.")


def _place(value: Any) -> str:
    return str(value) if "://" in str(value) else _folder(value)


class ParquetParams(JobParams):
    """Of a command line alone: nobody names a folder over the network."""

    to: Annotated[str, BeforeValidator(_place)] | None = _option(
        "Folder (the same path on every node) or address; without it the place of backups.",
        metavar="PLACE",
        local=True,
    )
    optional: Flag = _option("Receipts and events too, as an export names them.", local=True)

    def refuse_pairs(self, *, local: bool) -> None:
        if not local:
            raise InvalidInput(
                "Parquet is written by the command line: export_parquet.", details={"field": "kind"}
            )


KINDS: Mapping[str, type[JobParams]] = MappingProxyType(
    {
        REINDEX: ReindexParams,
        DEFERRED: DeferredParams,
        CONSISTENCY: SweepParams,
        DATAGOV: DatagovParams,
        PROMOTION: JobParams,
        DOCUMENTS: DocumentsParams,
        PARQUET: ParquetParams,
        UNDERSTAND: UnderstandParams,
    }
)


def extras_of(model: type[JobParams], name: str) -> dict[str, Any]:
    """What a field says to the command line."""
    extra = model.model_fields[name].json_schema_extra
    return dict(extra) if isinstance(extra, dict) else {}


def known_kind(name: str) -> str:
    """`name`, if there is such a job. Raises InvalidInput with the list of kinds."""
    if name not in KINDS:
        raise InvalidInput(
            f"No job kind {name!r}; use one of {', '.join(KINDS)}.", details={"field": "kind"}
        )
    return name


def checked_params(kind: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a request in their normal form.

    Raises InvalidInput: no such kind, an unknown parameter, or a value that breaks its rule.
    """
    model = KINDS[known_kind(kind)]
    allowed = [name for name in model.model_fields if "local" not in extras_of(model, name)]
    for name in params:
        if name not in allowed:
            known = f"use {', '.join(allowed)}" if allowed else "it takes none"
            raise InvalidInput(
                f"A {kind} job has no parameter {name!r}; {known}.", details={"field": name}
            )
    return normal_form(model, params, local=False)


def normal_form(
    model: type[JobParams], given: Mapping[str, Any], *, local: bool = True
) -> dict[str, Any]:
    """What is stored of parameters with known names; None is not given.

    `local`: of a command line. Raises InvalidInput: a value breaks its rule, or two do not go
    together.
    """
    asked = {name: value for name, value in given.items() if value is not None}
    try:
        found = model.model_validate(asked, context={"local": local})
    except ValidationError as error:
        order = list(asked)
        first = min(error.errors(), key=lambda one: order.index(str(one["loc"][0])))
        name, why = first["loc"][0], first["msg"].removeprefix("Value error, ")
        raise InvalidInput(f"{name}: {why}.", details={"field": name}) from None
    found.refuse_pairs(local=local)
    return found.stored()
