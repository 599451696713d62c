"""How many searches of a run were answered, and how many of them only in part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

# Share of answers that may be degraded in results to commit: a machine that is busy elsewhere is
# late once in a while; what is late more often than once in fifty is not what is measured.
MOST_DEGRADED = 0.02


@dataclass(slots=True)
class Searched:
    """`names`: how often each part of the service was missing from an answer."""

    answers: int = 0
    degraded: int = 0
    names: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, answers: Iterable[Sequence[str]]) -> Searched:
        """The count of answers, each given by the parts that it lacks."""
        made = cls()
        for lacking in answers:
            made.add(lacking)
        return made

    def add(self, lacking: Sequence[str]) -> None:
        self.answers += 1
        self.degraded += bool(lacking)
        self.names.update(lacking)

    def __add__(self, other: Searched) -> Searched:
        return Searched(
            self.answers + other.answers, self.degraded + other.degraded, self.names + other.names
        )

    @property
    def too_degraded(self) -> bool:
        """Whether the results are nothing to hold later runs to."""
        return self.degraded > MOST_DEGRADED * self.answers

    @property
    def line(self) -> str:
        told = ", ".join(f"{name} {count}" for name, count in sorted(self.names.items()))
        which = f" ({told})" if told else ""
        return f"{self.degraded} of {self.answers} answers were degraded{which}."

    def as_json(self) -> dict[str, Any]:
        return {
            "answers": self.answers,
            "degraded": self.degraded,
            "names": dict(sorted(self.names.items())),
        }
