"""Who may read and write what. Each store turns these values into its predicate, in one place."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class _Scope:
    user_id: str

    @property
    def own(self) -> ReadScope:
        """What belongs to the user alone."""
        return ReadScope(self.user_id, include_shared=False)


@dataclass(frozen=True, slots=True)
class ReadScope(_Scope):
    """`user_id = me`, or `user_id = system` in a DataGov tier when `include_shared`."""

    include_shared: bool = True


@dataclass(frozen=True, slots=True)
class WriteScope(_Scope):
    """Me only. `principal` names the key that writes, for provenance."""

    principal: str = ""
