"""What kind of turn this is, read from the question alone: how much context it needs. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rayapp.assistant.context.records import Complexity, ContextRequest, Task
from rayapp.assistant.gating.rules.intents import ToolNeeds
from rayapp.graphs.rules.context_type import MAX_READ_CHARS, context_type_of
from rayapp.inference.ports import Message
from rayapp.search.rules.query import estimate_context_limit
from rayapp.text.language import detect_language
from rayapp.text.normalize import normalize
from rayapp.text.stopwords import STOP_WORDS
from rayapp.text.tokens import tokens

# Client contract, "Prefetch": documents at hand leave less room for memories, but three at least;
# a long question needs more of them.
DOCUMENTS_SHARE = 0.6
LEAST_WITH_DOCUMENTS = 3
LONG_QUERY_CHARS = 200
LONG_QUERY_MORE = 5

# Content words from which a question is of the next kind (our choice: a greeting has one at most,
# a plain question about one thing up to four, and few questions of one sentence have more than 14).
SIMPLE_WORDS, MODERATE_WORDS, COMPLEX_WORDS = 2, 5, 15
# Words that join demands; two of them, or two question marks, make a question of several parts.
_JOINS = re.compile(
    r"\b(?:and (?:then|also)|then|also|as well as|but|versus|vs|compare|first|second|finally|step"
    r" by step)\b|(?<!\w)(?:ואז|וגם|אבל|לעומת|מול|השווה|תשווה|תשווי|קודם|אחר כך|אחר-כך|לבסוף|צעד"
    r" אחר צעד|שלב אחר שלב)(?!\w)|[?;](?=\s*\S)",
    re.IGNORECASE,
)
MANY_JOINS = 2


def read_task(request: ContextRequest, needs: ToolNeeds) -> Task:
    """Read a turn once, in any language; `needs` is what its words ask of tools."""
    plain = normalize(request.query)
    return Task(
        complexity=_complexity(plain),
        context_type=context_type_of(request.query),
        language=detect_language(plain),
        intent=needs.name,
        limit=request.limit or _limit(plain, has_documents=request.has_documents),
    )


def topic_of(recent: Sequence[Message]) -> str:
    """What the conversation was about before this question: the last words of the user, raw."""
    return next((one.content for one in reversed(recent) if one.role == "user"), "")


def _limit(plain: str, *, has_documents: bool) -> int:
    limit = estimate_context_limit(plain)
    if has_documents:
        limit = max(LEAST_WITH_DOCUMENTS, int(limit * DOCUMENTS_SHARE))
    return limit + LONG_QUERY_MORE if len(plain) > LONG_QUERY_CHARS else limit


def _complexity(plain: str) -> Complexity:
    head = plain[:MAX_READ_CHARS]
    words = sum(token.text not in STOP_WORDS for token in tokens(head))
    parts = len(_JOINS.findall(head))
    if words < SIMPLE_WORDS:
        return "trivial"
    if words >= COMPLEX_WORDS or parts >= MANY_JOINS:
        return "complex"
    return "moderate" if words >= MODERATE_WORDS or parts else "simple"
