"""A turn of a conversation: its words, marks in an answer, echoes that teach nothing. Pure."""

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile
from typing import Any

from rayapp.assistant.tools.rules.definitions import own_name
from rayapp.inference.chat.rules.integrity import find_thinking
from rayapp.inference.ports import Message, Role
from rayapp.memory.item import Outcome, derived_id
from rayapp.memory.rules.creation import MAX_LABEL_CHARS, MAX_TAGS
from rayapp.text.normalize import normalize, shows_nothing
from rayapp.text.utterance import reading

# The marks by which an assistant says which memories helped: `<!-- MEM: 1👍 2👎 3➖ -->`.
#
# Models write them in many ways, so reading is tolerant; what is no mark is never taken out.

INSTRUCTION_EN = (
    "When you have answered, end with one line that says how the numbered memories served: "
    "<!-- MEM: 1👍 2👎 3➖ -->. 👍 it helped, 👎 it was wrong or misled, ➖ it was not used. Use"
    " the numbers in brackets, and leave the line out when no memory was shown."
)
INSTRUCTION_HE = (
    "בסוף התשובה הוסף שורה אחת שאומרת כיצד שירתו הזיכרונות הממוספרים: <!-- MEM: 1👍 2👎 3➖ -->."
    " 👍 עזר, 👎 היה שגוי או הטעה, ➖ לא היה בשימוש. השתמש במספרים שבסוגריים, והשמט את השורה אם לא"
    " הוצג אף זיכרון."
)

# Skin tones, variation selectors, joiners and bidi controls: seen by nobody, written by models.
_UNSEEN = "\\s\u200b-\u200f\u202a-\u202e\u2060\u2066-\u2069\ufe0e\ufe0f\U0001f3fb-\U0001f3ff"
# A minus stands for "failed" only where it cannot be a range or the end of the comment.
_MARKS = "👍|👎|➖|✅|❌|\\+1?(?!\\d)|[-−–](?![\\d>-])|[?~=]"
_OUTCOME: dict[str, Outcome] = {
    **dict.fromkeys(("👍", "✅", "+", "+1"), Outcome.WORKED),
    **dict.fromkeys(("👎", "❌", "-", "−", "–"), Outcome.FAILED),
}
_OPEN = rf"<!--[{_UNSEEN}]*+MEM[{_UNSEEN}]*+:"
# Longest comment that is still read as marks, characters; 200 memories of ten fit.
_MOST_CHARS = 2_000
# Marks of one answer that count, as many as one outcome may name.
MOST_MARKS = 200
# Characters from the end of an answer in which marks are looked for: twice the longest memory.
MOST_READ = 200_000
_COMMENT = re.compile(
    # Closed in reach and before another comment opens, else only what looks like marks.
    rf"{_OPEN}(?:(?P<whole>(?:(?!-->|<!--)[\s\S]){{0,{_MOST_CHARS}}})-->"
    rf"|(?P<open>(?:[{_UNSEEN},;|#\[\]():]|\d|{_MARKS}){{0,{_MOST_CHARS}}}))",
    re.IGNORECASE,
)
# Four digits: no answer shows more, and a number without an end would be costly to read.
_TOKEN = re.compile(rf"(?<!\d)(\d{{1,4}})(?!\d)|({_MARKS})")
_FENCED = re.compile(r"^[ \t]{0,3}(```+|~~~+)[^\n]*$[\s\S]*?(?:^[ \t]{0,3}\1[^\n]*$|\Z)", re.M)
_INLINE = re.compile(r"(?<!`)(`{1,2})(?!`)[^`\n]+?\1(?!`)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribution:
    """`text` is the answer without the comments; `marks` say what each position (from 1) did."""

    text: str
    marks: Mapping[int, Outcome]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """Positions by what they did, and positions that the receipt does not show."""

    by_outcome: Mapping[Outcome, tuple[int, ...]]
    skipped: tuple[int, ...]


def instruction(language: str) -> str:
    """What asks the model for the marks, in the language of the question."""
    return INSTRUCTION_HE if language == "he" else INSTRUCTION_EN


def read_attribution(answer: str) -> Attribution:
    """Marks of an answer, and the answer without them. Comments inside code are part of it.

    When a position is marked twice, the last mark counts.
    """
    if "<!--" not in answer:
        return Attribution(text=answer, marks={})
    marks: dict[int, Outcome] = {}
    kept: list[str] = []
    end = 0
    for found in _outside(code_spans(answer), answer):
        body = found["whole"] if found["whole"] is not None else found["open"]
        for position, outcome in _marks(body).items():
            if position in marks or len(marks) < MOST_MARKS:
                marks[position] = outcome
        kept.append(answer[end : found.start()])
        end = found.end()
    if not kept:
        return Attribution(text=answer, marks={})
    rest = answer[end:]
    if not rest.strip():
        return Attribution(text="".join(kept).rstrip(), marks=marks)
    return Attribution(text="".join([*kept, rest]), marks=marks)


def code_spans(text: str) -> list[tuple[int, int]]:
    """Where code stands in a text, in order and without overlaps."""
    found = (one.span() for pattern in (_FENCED, _INLINE) for one in pattern.finditer(text))
    spans: list[tuple[int, int]] = []
    for start, end in sorted(found):
        if spans and start < spans[-1][1]:
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        else:
            spans.append((start, end))
    return spans


def resolve(marks: Mapping[int, Outcome], shown: Collection[int]) -> Resolved:
    """What the marks say of the positions that a receipt shows."""
    by_outcome: dict[Outcome, list[int]] = {}
    for position in sorted(marks):
        if position in shown:
            by_outcome.setdefault(marks[position], []).append(position)
    skipped = tuple(sorted(position for position in marks if position not in shown))
    return Resolved(
        by_outcome={outcome: tuple(found) for outcome, found in by_outcome.items()}, skipped=skipped
    )


def _outside(code: Sequence[tuple[int, int]], answer: str) -> Iterator[re.Match[str]]:
    """The comments that no code holds; both come in order, so each span is looked at once."""
    at = 0
    for found in _COMMENT.finditer(answer, max(0, len(answer) - MOST_READ)):
        start = found.start()
        while at < len(code) and code[at][1] <= start:
            at += 1
        if at == len(code) or start < code[at][0]:
            yield found


def _marks(body: str) -> dict[int, Outcome]:
    """`1👍, 2 👎`; numbers without a mark of their own take the next one (`1, 2 👍`)."""
    marks: dict[int, Outcome] = {}
    waiting: list[int] = []
    for number, mark in _TOKEN.findall(body):
        if number:
            waiting.append(int(number))
            continue
        marks |= dict.fromkeys(waiting, _OUTCOME.get(mark, Outcome.UNKNOWN))
        waiting = []
    return marks


# Fingerprints of what was put before an assistant, so that its echo is not learned again.
#
# An echo that is learned outlives its source: when the source is corrected, the echo brings the old
# text back. The test is strict, because a false "known" would swallow a correction: every three
# words in a row must have been injected, so "Dana lives in Eilat" is new after "Dana lives in
# Haifa".

# Words of one fingerprint: two are found in half of all sentences, four miss short facts.
SHINGLE = 3
# 32 bits: with 8,000 fingerprints held, two in a million are met by chance.
HEX_DIGITS = 8
# Fingerprints of one text; a memory of 100,000 characters must not fill a session alone.
MAX_PER_TEXT = 400

_WORD = re.compile(r"[^\W_]+(?:['\"][^\W_]+)*")
_SENTENCE = re.compile(r"[.!?…\n;]*+(?:[^.!?…\n;]++(?:[.!?…;]++|\n++|\Z)|\Z)")
# The assistant speaks of "your dog" where the memory says "my dog".
_PERSON = {
    **dict.fromkeys(("i", "you", "me", "user"), "you"),
    **dict.fromkeys(("my", "your", "mine", "yours", "user's"), "your"),
    **dict.fromkeys(("am", "are", "is"), "is"),
    **dict.fromkeys(("i'm", "you're"), "you're"),
    **dict.fromkeys(("i've", "you've"), "you've"),
    **dict.fromkeys(("שלי", "שלך", "שלכם", "שלנו"), "שלך"),
    # The last one also marks an object; as every "את" becomes "אתה", no two sentences meet by it.
    **dict.fromkeys(("אני", "אתה", "את"), "אתה"),
    **dict.fromkeys(("לי", "לך"), "לך"),
}
# What an answer begins with. Some of these words change what follows ("No meetings on Friday",
# "בטח דנה גרה בחיפה"), so they lead in only before a comma.
_OPENER_EN = r"(?:(?:yes|ok|okay|so|and)[, ]+|(?:no|sure|well) ?,[, ]*)"
_OPENER_HE = r"(?:(?:כן|אוקיי|ובכן)[, ]+|(?:לא|אז|בטח) ?,[, ]*)"
# How an answer leads in what it repeats.
_LEAD = re.compile(
    rf"^{_OPENER_EN}*"
    r"(?:(?:as|like) (?:you|i) (?:said|told me|mentioned|recall|remember)|you (?:have )?(?:said"
    r"|told me|mentioned)|i (?:remember|recall|know|see)|(?:according to|from) (?:my )?(?:memory"
    r"|notes)|(?:my )?memory says|from what (?:i|you) \w+)"
    rf"(?: (?:earlier|before|that))*[,:]? |^{_OPENER_EN}"
    rf"|^{_OPENER_HE}*(?:כפי ש(?:אמרת|סיפרת|ציינת)|כמו ש(?:אמרת|סיפרת)|אמרת"
    r"|סיפרת|ציינת|אני זוכר(?:ת)?|לפי הזיכרון|בזיכרון כתוב|ידוע לי)(?: לי)?[,:]? (?:ש(?=\w))?"
    rf"|^{_OPENER_HE}",
    re.IGNORECASE,
)


def fingerprints_of(texts: Iterable[str]) -> tuple[str, ...]:
    """Fingerprints of injected texts, each once, in their order."""
    found: dict[str, None] = {}
    for text in texts:
        found |= dict.fromkeys(_fingerprints(text))
    return tuple(found)


@reading
def _fingerprints(text: str) -> tuple[str, ...]:
    taken: dict[str, None] = {}
    for sentence in _sentences(text):
        taken |= dict.fromkeys(_prints(_words(sentence)))
        if len(taken) >= MAX_PER_TEXT:
            break
    return tuple(taken)[:MAX_PER_TEXT]


def already_known(text: str, fingerprints: Collection[str]) -> bool:
    """Whether every sentence of a text was injected; a text without words is not known."""
    known = _as_set(fingerprints)
    words = [words for sentence in _sentences(text) if (words := _words(sentence))]
    if not known or not words:
        return False
    return all(_sentence_known(sentence, known) for sentence in _sentences(text))


def without_known(text: str, fingerprints: Collection[str]) -> str:
    """The sentences of a text that were not injected, as they stand; empty when none is new."""
    known = _as_set(fingerprints)
    if not known:
        return text
    sentences = list(_sentences(text))
    kept = [one for one in sentences if not _sentence_known(one, known, neutral=False)]
    if len(kept) == len(sentences):
        return text
    new = "".join(kept).strip()
    return new if _words(new) else ""


def _as_set(fingerprints: Collection[str]) -> Collection[str]:
    """Of a session those of each context are joined."""
    if isinstance(fingerprints, set | frozenset):
        return fingerprints
    parts = ((one, range(0, len(one), HEX_DIGITS)) for one in fingerprints)
    return frozenset(one[at : at + HEX_DIGITS] for one, starts in parts for at in starts)


def _sentence_known(sentence: str, known: Collection[str], *, neutral: bool = True) -> bool:
    """`neutral`: what a sentence without words counts as."""
    words = _words(sentence)
    if not words:
        return neutral
    plain = normalize(sentence)
    led = _words(_LEAD.sub("", plain, count=1))
    return any(
        candidate and all(one in known for one in _prints(candidate)) for candidate in (words, led)
    )


def _sentences(text: str) -> Iterator[str]:
    for found in _SENTENCE.finditer(text):
        yield found.group()


def _words(text: str) -> list[str]:
    found = (word.casefold() for word in _WORD.findall(normalize(text)))
    return [_PERSON.get(word, word) for word in found]


def _prints(words: list[str]) -> Iterator[str]:
    """Of each three words in a row; of all of them when there are fewer."""
    if not words:
        return
    for start in range(max(1, len(words) - SHINGLE + 1)):
        part = "\x00".join(words[start : start + SHINGLE])
        yield hashlib.blake2b(part.encode(), digest_size=HEX_DIGITS // 2).hexdigest()


# A turn that must be scored is longer than this, characters (client contract).
TRIVIAL_QUESTION_CHARS = 10
TRIVIAL_ANSWER_CHARS = 50
# The last messages that a question is read with (client contract).
RECENT_MESSAGES = 10
# Where a text was cut to fit.
CUT = "…"
# How a stored turn is written; without the second where nothing of the answer is kept.
ASKED, ANSWERED = "User: ", "\nAssistant: "
# Tools by which an assistant scores its own turn.
SCORING_TOOLS = frozenset({"record_response", "score_memories"})
EXCHANGE_TAG = "exchange"

OPEN_BLOCK = "<memory_context>"
CLOSE_BLOCK = "</memory_context>"
# Only a block as we write it: its marks alone on their lines, and none of them in between. A
# prompt that merely speaks of the block keeps all of its text.
_BLOCK = re.compile(
    rf"\n{{0,2}}^{OPEN_BLOCK}\n(?:(?!^{OPEN_BLOCK}$|^{CLOSE_BLOCK}$)[^\n]*\n)*^{CLOSE_BLOCK}$",
    re.MULTILINE,
)
# The beginning of a thought on a line of its own: no sentence speaks of the tag like that.
_BEGIN_ALONE = re.compile(r"\s*<think(?:ing)?>[ \t]*(?:\n|\Z)", re.IGNORECASE)
# Some servers send the end of a thought without its beginning, on a line of its own.
_END_ALONE = re.compile(r"(?:\A|\n)[ \t]*</think(?:ing)?>\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A question and its answer without marks, thoughts and injected text.

    `tools`: each call of one. `interrupted`: the answer broke off, so nothing is learned from it.
    `trivial`: too short to be worth a score, or interrupted.
    """

    question: str
    answer: str
    tools: tuple[str, ...]
    interrupted: bool = False

    @property
    def learned_answer(self) -> str:
        """What may be learned from."""
        return "" if self.interrupted else self.answer

    @property
    def trivial(self) -> bool:
        if self.interrupted:
            return True
        short = len(self.question) <= TRIVIAL_QUESTION_CHARS
        return short or len(self.answer) <= TRIVIAL_ANSWER_CHARS

    @property
    def scoring_calls(self) -> int:
        """Calls of tools that score, with or without a server's name before them."""
        return sum(own_name(tool) in SCORING_TOOLS for tool in self.tools)

    def scored_itself(self, *, owed_before: bool) -> bool:
        """Whether a call was about this turn; the first one pays what an earlier turn owed."""
        return self.scoring_calls > (1 if owed_before else 0)


# Why a model ended before its answer did, in the words of OpenAI's API.
CUT_SHORT = frozenset({"length", "content_filter"})


def is_cut_short(choice: Mapping[str, Any]) -> bool:
    """Whether a choice, or a message that was kept with its end, is a part of an answer."""
    reason = choice.get("finish_reason")
    return isinstance(reason, str) and reason in CUT_SHORT


def last_question(messages: Sequence[Message]) -> int | None:
    """Where the last message of the user stands; one without text is none."""
    for at in range(len(messages) - 1, -1, -1):
        if messages[at].role == "user" and not shows_nothing(messages[at].content):
            return at
    return None


def recent_before(messages: Sequence[Message], question: int) -> tuple[Message, ...]:
    """The last messages before the question, oldest first, without what systems said."""
    talk = [one for one in messages[:question] if one.role in ("user", "assistant")]
    return tuple(
        replace(one, content=cleaned(one.content, one.role)) for one in talk[-RECENT_MESSAGES:]
    )


def finished_turn(
    messages: Sequence[Message], tools_called: Sequence[str], *, interrupted: bool = False
) -> Turn | None:
    """The turn that the last message ends; None when it is not the assistant's, or is empty.

    `interrupted`: the answer broke off, so it may be empty or missing.
    """
    at = last_question(messages)
    if at is None or (messages[-1].role != "assistant" and not interrupted):
        return None
    since = [one.role for one in messages[at + 1 :] if one.role != "system"]
    if ("assistant", "user") in pairwise(since):
        return None  # what is answered is a picture without a word
    said = (one.content for one in messages[at + 1 :] if one.role == "assistant")
    answer = "\n".join(part for one in said if (part := cleaned(one, "assistant")))
    question = cleaned(messages[at].content, "user")
    if shows_nothing(question) or (shows_nothing(answer) and not interrupted):
        return None
    return Turn(
        question=question, answer=answer, tools=tuple(tools_called), interrupted=interrupted
    )


def raw_answer(messages: Sequence[Message]) -> str:
    """The last message as the assistant wrote it, thoughts apart: there the marks stand."""
    return _without_thoughts(messages[-1].content)


def cleaned(text: str, role: Role) -> str:
    """A message without an injected block and marks; of the assistant's, without thoughts too."""
    text = _BLOCK.sub("", text)
    if role == "assistant":
        text = _without_thoughts(text)
    return read_attribution(text).text.strip()


def _without_thoughts(text: str) -> str:
    """Without the thoughts before the answer; where an answer speaks of the tags, they stay."""
    lower = text.lower()
    if "</think" not in lower and "<think" not in lower:
        return text
    found = find_thinking(text, code_spans(text))
    if not found.outer and _BEGIN_ALONE.match(text):
        # The end stands behind code that the thought began and never closed.
        found = find_thinking(text)
    end = 0
    for start, after in found.outer:
        if text[end:start].strip():
            break
        if found.unopened and end == 0 and not _END_ALONE.search(text, 0, after):
            break
        end = after
    cut_off = found.unclosed is not None and _BEGIN_ALONE.match(text, end)
    return "" if cut_off else text[end:]


def enrich(messages: Sequence[Message], block: str) -> tuple[Message, ...]:
    """The messages with `block` at the end of the first system message, or in a new one.

    A block of an earlier call is replaced. An empty `block` only takes that one out.
    """
    clean = [
        replace(one, content=without_block(one.content)) if one.role == "system" else one
        for one in messages
    ]
    if not block:
        return tuple(new for new, old in zip(clean, messages, strict=True) if not only_block(old))
    wrapped = f"{OPEN_BLOCK}\n{block.strip(chr(10))}\n{CLOSE_BLOCK}"
    at = next((at for at, one in enumerate(clean) if one.role == "system"), None)
    if at is None:
        return (Message("system", wrapped), *clean)
    said = clean[at].content
    clean[at] = Message("system", f"{said}\n\n{wrapped}" if said else wrapped)
    return tuple(clean)


def with_fields(
    given: Sequence[Message], raw: Sequence[Mapping[str, Any]], new: Sequence[Message]
) -> list[dict[str, Any]]:
    """What `enrich` made of the given messages, with all fields that they were sent with; only what
    changed is written anew."""
    fields = list(raw)
    if len(new) > len(given):
        given, fields = (Message("system", ""), *given), [{"role": "system"}, *fields]
    elif len(new) < len(given):
        fields = [kept for kept, old in zip(raw, given, strict=True) if not only_block(old)]
        given = [old for old in given if not only_block(old)]
    return [
        {**_plain(one), **kept} if one == old and "content" in kept else {**kept, **_plain(one)}
        for one, old, kept in zip(new, given, fields, strict=True)
    ]


def _plain(message: Message) -> dict[str, Any]:
    return {"role": message.role, "content": message.content}


def with_roles(
    messages: Sequence[Message], raw: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """As they were sent, but for the role, for which programs have several names."""
    return [{**sent, "role": one.role} for one, sent in zip(messages, raw, strict=True)]


def tools_called(raw: Sequence[Mapping[str, Any]]) -> list[str]:
    """Names in the `tool_calls` of this turn."""
    names: list[str] = []
    for message in _since_user(raw):
        calls = message.get("tool_calls")
        for one in calls if isinstance(calls, list) else ():
            function = one.get("function") if isinstance(one, dict) else None
            name = function.get("name") if isinstance(function, dict) else None
            if isinstance(name, str) and name.strip():
                names.append(name.strip())
    return names[::-1]


def tool_rounds(raw: Sequence[Mapping[str, Any]]) -> int:
    """How often the model called tools since the user's last message."""
    return sum(
        message.get("role") == "assistant" and bool(message.get("tool_calls"))
        for message in _since_user(raw)
    )


def _since_user(raw: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """What comes after the user's last message, the newest first."""
    return takewhile(lambda message: message.get("role", "user") != "user", reversed(raw))


def only_block(message: Message) -> bool:
    """Whether it is a system message that was made for the block of an earlier call."""
    said = message.content
    return message.role == "system" and said != "" and without_block(said) == ""


def without_block(text: str) -> str:
    """A system message without the block of an earlier call."""
    return _BLOCK.sub("", text) if OPEN_BLOCK in text else text


def stored_text(turn: Turn, known: Collection[str], limit: int) -> tuple[str, bool]:
    """The turn as one text of at most `limit` characters, and whether something was cut.

    Of the answer, only what was not put before the assistant: an echo is not learned. Nothing of
    one that broke off. Where nothing of it is left, the question stands alone.
    """
    question = turn.question
    # What lies beyond the limit is not compared: each of its words costs some microseconds.
    answer = without_known(turn.learned_answer[:limit], known)
    if not answer:
        text = _cut(question, limit - len(ASKED))
        return f"{ASKED}{text}", text != question or len(turn.learned_answer) > limit
    room = limit - len(ASKED + ANSWERED)
    if len(question) + len(answer) <= room:
        return f"{ASKED}{question}{ANSWERED}{answer}", len(turn.answer) > limit
    question = _cut(question, max(room // 2, room - len(answer)))
    answer = _cut(answer, room - len(question))
    return f"{ASKED}{question}{ANSWERED}{answer}", True


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: max(0, limit - 1)] + CUT


def tags_of(turn: Turn, *, with_memory: bool) -> tuple[str, ...]:
    """The tags of a stored turn (client contract)."""
    tags = [EXCHANGE_TAG]
    if with_memory:
        tags.append("memory_assisted")
    if turn.tools:
        tags.append("tool_assisted")
    tags += [f"tool:{tool.strip()}"[:MAX_LABEL_CHARS] for tool in turn.tools if tool.strip()]
    return tuple(dict.fromkeys(tags))[:MAX_TAGS]


def exchange_id(user_id: str, conversation_id: str, message_id: str) -> str:
    """The memory id of a stored turn: the same call again meets it."""
    return derived_id("exchange", user_id, conversation_id, message_id)
