"""One question of a helper to a language model, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar, get_args

from rayapp.text.language import detect_language

T = TypeVar("T")

HelperName = Literal[
    "outcome_detection",
    "fact_extraction",
    "contextual_prefix",
    "profile_detection",
    "history_summary",
    "merge_duplicates",
    "tool_result_summary",
]
HELPERS: tuple[HelperName, ...] = get_args(HelperName)
PromptLanguage = Literal["he", "en"]
# off: no endpoint, or switched off. ledger: nobody knows what was spent; soon it is known again.
# broken: the endpoint fails or refuses. invalid: its answer is not what was asked for.
WhyNot = Literal["off", "budget", "ledger", "breaker", "timeout", "broken", "invalid"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelQuestion(Generic[T]):
    """`variables`: exactly those that the prompt names. `answer`: str, or a pydantic model.

    timeout_s: of everything, a second try included; None = the setting of the helper.
    """

    helper: HelperName
    variables: Mapping[str, Any]
    answer: type[T]
    language: PromptLanguage
    timeout_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReply(Generic[T]):
    """`why` is None exactly when there is a value. `detail` never holds a text of a user."""

    value: T | None = None
    why: WhyNot | None = None
    detail: str = ""
    tokens: int = 0

    @property
    def ok(self) -> bool:
        """True when the model answered."""
        return self.why is None


def prompt_language(text: str) -> PromptLanguage:
    """The language to ask in: Hebrew as soon as Hebrew has a real share in the text."""
    return "he" if detect_language(text) in ("he", "mixed") else "en"
