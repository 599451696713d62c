"""One line of `rayapp doctor`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["ok", "note", "blocks"]


@dataclass(frozen=True, slots=True)
class Check:
    """`fix` is a command or a setting; empty when all is well."""

    name: str
    verdict: Verdict
    found: str
    fix: str = ""
