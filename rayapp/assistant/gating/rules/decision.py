"""Which of the offered tools may be called this turn, and how much context it needs. Pure."""

import re
from collections.abc import Mapping, Sequence

from rayapp.assistant import records
from rayapp.assistant.gating.rules.intents import ToolNeeds
from rayapp.assistant.tools.rules.definitions import MEMORY_TOOLS, own_name
from rayapp.graphs.rules.question import MAX_CONTEXT_CHARS, context_type_of
from rayapp.inference.ports import Message
from rayapp.search.requests import ConfidenceLabel
from rayapp.search.rules.query import estimate_context_limit
from rayapp.text.hebrew import STOP_WORDS
from rayapp.text.language import detect_language
from rayapp.text.normalize import normalize
from rayapp.text.tokens import tokens
from rayapp.text.utterance import beginning

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


def read_task(request: records.ContextRequest, needs: ToolNeeds) -> records.Task:
    """Read a turn once, in any language; `needs` is what its words ask of tools."""
    plain = normalize(request.query)
    return records.Task(
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


def _complexity(plain: str) -> records.Complexity:
    head = beginning(plain, MAX_CONTEXT_CHARS)
    words = sum(token.text not in STOP_WORDS for token in tokens(head))
    parts = len(_JOINS.findall(head))
    if words < SIMPLE_WORDS:
        return "trivial"
    if words >= COMPLEX_WORDS or parts >= MANY_JOINS:
        return "complex"
    return "moderate" if words >= MODERATE_WORDS or parts else "simple"


# Results from which a sure memory is enough (0026).
ENOUGH_RESULTS = 3

TIME_TOOLS = frozenset(
    {"get_current_time", "convert_time", "current_time", "get_time", "get_current_date"}
)
# They read a file that the user brings in this turn; no memory can stand for it (client contract).
ATTACHMENT_TOOLS = frozenset({"docling_convert", "docling_ocr"})
KEPT_TOOLS = MEMORY_TOOLS | TIME_TOOLS | ATTACHMENT_TOOLS


def decide_tool_gating(
    needs: ToolNeeds,
    *,
    confidence: ConfidenceLabel,
    result_count: int,
    degraded: bool,
    tools: Sequence[str],
    ended: bool = False,
) -> records.GatingDecision:
    """The first rule that applies decides; the order of `tools` is kept.

    Args:
        needs: what the question asks for (`intents.tool_needs`).
        confidence: of what memory found.
        result_count: memories that are before the assistant because of this question.
        degraded: memory could not look everywhere; then nothing is taken away.
        ended: tools were called as often in this turn as they may be: now it must be answered.
    """
    offered = tuple(tools)
    allowed: tuple[str, ...] = ()
    reason = _reason(needs, confidence, result_count, degraded)
    if ended and offered:
        reason = "CHAIN_DEPTH_REACHED"
    elif reason == "HIGH_CONFIDENCE_REDUCTION":
        allowed = tuple(tool for tool in offered if own_name(tool).lower() in KEPT_TOOLS)
    else:
        allowed = offered
    reduced = len(offered) - len(allowed)
    trace_he, trace_en = _trace(reason, needs, result_count, len(allowed), len(offered))
    return records.GatingDecision(
        allowed=allowed, reduced=reduced, reason=reason, trace_he=trace_he, trace_en=trace_en
    )


def _reason(
    needs: ToolNeeds, confidence: ConfidenceLabel, result_count: int, degraded: bool
) -> records.ReasonCode:
    if degraded:
        return "FAIL_OPEN_DEGRADED"
    if needs.explicit is not None:
        return "EXPLICIT_TOOL_REQUEST"
    if needs.research:
        return "RESEARCH_INTENT"
    if needs.current:
        return "DATE_QUERY_NEEDS_SEARCH"
    if confidence == "high" and result_count >= ENOUGH_RESULTS:
        return "HIGH_CONFIDENCE_REDUCTION"
    return "DEFAULT_ALLOW_ALL"


def _trace(
    reason: records.ReasonCode, needs: ToolNeeds, results: int, allowed: int, offered: int
) -> tuple[str, str]:
    """The same sentence in Hebrew and in English."""
    pair = _ENOUGH if reason == "HIGH_CONFIDENCE_REDUCTION" and offered == 0 else _TRACES[reason]
    facts = {"results": results, "allowed": allowed, "offered": offered, "tool": needs.explicit}
    return pair[0].format(**facts), pair[1].format(**facts)


_ENOUGH = (
    "הזיכרון משיב בביטחון גבוה ({results} תוצאות).",
    "Memory answers with high confidence ({results} results).",
)
_TRACES: Mapping[records.ReasonCode, tuple[str, str]] = {
    "CHAIN_DEPTH_REACHED": (
        "כלים כבר הופעלו בתור הזה ככל שמותר, ועכשיו יש לענות.",
        "Tools were called in this turn as often as they may be, so now it must be answered.",
    ),
    "FAIL_OPEN_DEGRADED": (
        "הזיכרון פועל חלקית, לכן כל הכלים מותרים.",
        "Memory works only in part, so all tools are allowed.",
    ),
    "EXPLICIT_TOOL_REQUEST": (
        "המשתמש ביקש כלי במפורש ({tool}), לכן כל הכלים מותרים.",
        "The user asked for a tool ({tool}), so all tools are allowed.",
    ),
    "RESEARCH_INTENT": (
        "המשתמש ביקש מחקר, לכן כל הכלים מותרים.",
        "The user asked for research, so all tools are allowed.",
    ),
    "DATE_QUERY_NEEDS_SEARCH": (
        "השאלה דורשת תאריך או מידע עדכני, לכן כל הכלים מותרים.",
        "The question needs a date or the latest state, so all tools are allowed.",
    ),
    "HIGH_CONFIDENCE_REDUCTION": (
        "הזיכרון משיב בביטחון גבוה ({results} תוצאות): נשארו {allowed} מתוך {offered} כלים.",
        "Memory answers with high confidence ({results} results): {allowed} of {offered} tools "
        "remain.",
    ),
    "DEFAULT_ALLOW_ALL": (
        "הזיכרון לבדו אינו מספיק, לכן כל הכלים מותרים.",
        "Memory alone is not enough, so all tools are allowed.",
    ),
}
