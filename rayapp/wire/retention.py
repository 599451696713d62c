"""Retention and legal holds over HTTP, for operators."""

from datetime import datetime
from typing import Annotated, Self

from pydantic import Field

from rayapp.admin import ports
from rayapp.core.ids import OWNER_ID_PATTERN
from rayapp.wire import bases

Held = Annotated[str, bases.matching(OWNER_ID_PATTERN)]


class RunBody(bases.Strict, bases.Confirmed, bases.Keyed):
    """The typed word."""


class LimitView(bases.Answer):
    """What was last changed before this moment goes."""

    kind: ports.RetentionKind
    before: datetime
    due: int = Field(description="Rows past it when this was answered, before a run.")
    removed: int = Field(description="By this call, memories that were merged into them included.")


class RetentionAnswer(bases.Written):
    """No `limits`: nothing goes by itself. A row past two limits counts for both."""

    at: datetime
    dry_run: bool
    limits: tuple[LimitView, ...]
    users: int = Field(description="Users with rows past a limit.")
    held: tuple[str, ...] = Field(description="Users of whom nothing goes.")
    skipped: int = Field(description="An active conversation; a document that others rest on.")
    complete: bool = Field(description="False: the time was up; ask again, or let it go on later.")

    @classmethod
    def from_report(cls, report: ports.RetentionReport, *, dry_run: bool) -> Self:
        limits = tuple(
            LimitView.of(
                limit, due=report.due[limit.kind], removed=report.removed.get(limit.kind, 0)
            )
            for limit in report.limits
        )
        return cls.of(report, dry_run=dry_run, limits=limits, success=True, degraded=())


class HoldBody(bases.Strict, bases.Keyed):
    """Whose data are kept, and why."""

    user_id: Held = Field(description="The user; `org/user` in a tenant.")
    reason: Annotated[bases.Label, Field(min_length=1, max_length=bases.MAX_REASON_CHARS)]


class ReleaseQuery(bases.Strict):
    """Whose hold ends."""

    user_id: Held = Field(description="The user that is held.")


class HoldView(bases.Answer):
    """Nothing of this user is deleted."""

    user_id: str
    reason: str
    placed_by: str = Field(description="The principal of the key.")
    at: datetime


class HoldsAnswer(bases.Success):
    """Oldest first."""

    holds: tuple[HoldView, ...]


class HoldAnswer(bases.Written):
    """The hold as it is kept: an earlier one stays."""

    hold: HoldView


class ReleasedAnswer(bases.Written):
    """The user's data may be deleted again."""

    user_id: str
    message: str
