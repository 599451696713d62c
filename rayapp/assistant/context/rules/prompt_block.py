"""The text block for the assistant: escaping, its exact frame, and what fits."""

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field

from rayapp.assistant.context.rules.line_notes import authority_of, note_of
from rayapp.assistant.records import ContextBlock, ContextLine, Section
from rayapp.graphs.rules.directives import CharTable
from rayapp.inference.rules import total_tokens
from rayapp.memory.item import MemoryItem
from rayapp.memory.tiers import tier_name
from rayapp.text.utterance import reading

# Makes text that others wrote safe to stand inside a prompt: one line that forges nothing.
#
# The reader is a language model, and programs with patterns of their own, so what could pass for a
# mark of the block is changed in sight (`<` becomes `‹`), and only what nobody sees is left out.
# Combining marks are skipped where a mark of the block is looked for: a reader looks through them.
# Applied twice it changes nothing more. Every pattern is linear: a memory may be 100,000
# characters.

# Stands for the line breaks of a text.
LINE_BREAK = "⏎"
# A text of which nothing is left to be seen.
NOTHING = "…"
UNKNOWN_ID = "_"
# Rounds of the rules before all marks are taken at once. Texts that people write need two.
MOST_ROUNDS = 8

# Words with one blank between them, of signs that no mark is made of: nothing is changed in it.
_WORD = "[!-)+-;?-Z\\\\^-~\u05d0-\u05ea\u05f3\u05f4×]++"
_ORDINARY = re.compile(f"{_WORD}(?: {_WORD})*")
_BREAKS = re.compile("(?<![ \t])[ \t]*+[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]\\s*+")
# Joiners change what an emoji or a Persian word is, and only stand between such characters.
_JOINERS = "\u200c\u200d"
_BESIDE = f"[^\x00-\x7f\\s{_JOINERS}{LINE_BREAK}]"
_LOOSE_JOINER = re.compile(f"(?<!{_BESIDE})[{_JOINERS}]|[{_JOINERS}](?!{_BESIDE})")
_SPACES = re.compile(r"\s+")
# Control, format (bidi, zero-width) and surrogate characters.
_DROPPED = frozenset({"Cc", "Cf", "Cs"})
# Invisible characters that can carry a text of their own or part what belongs together: tags,
# selectors of variants, fillers and joiners of scripts, and what is no character.
_HIDDEN = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u3164\ufe00-\ufe0d\uffa0\ufff0-\ufff8"
    "\ufdd0-\ufdef\ufffe\uffff\U00016fe4\U000e0000-\U000e0fff]"
)
# The selectors that choose how an emoji or a keycap looks say nothing anywhere else.
_EMOJI = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2194-\u21aa\u231a\u231b\u2328\u23cf\u23e9-\u23fa\u24c2\u25aa-\u25fe\u2600-\u2767"
    "\u2776-\u27bf\u2934\u2935\u2b00-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
_LOOSE_SELECTOR = re.compile(
    f"(?<![{_EMOJI}])(?<![0-9#])[\ufe0e\ufe0f]|(?<=[0-9#])[\ufe0e\ufe0f](?!\u20e3)"
)


def _combining() -> str:
    """All combining marks, as the inside of a character class. They lie in these two planes."""
    found = [c for c in range(0x300, 0x1F000) if unicodedata.category(chr(c))[0] == "M"]
    starts = [c for c in found if unicodedata.category(chr(c - 1))[0] != "M"]
    ends = [c for c in found if unicodedata.category(chr(c + 1))[0] != "M"]
    return "".join(f"{chr(a)}-{chr(b)}" for a, b in zip(starts, ends, strict=True))


_M = _combining()
# A combining mark on a sign belongs to no word, and only hides the sign from programs.
_ON_SIGN = re.compile(rf"(?<=[<>\[\]*=:/!?|])[{_M}{_JOINERS}]+")
# These three are signs of their own that are written in two parts.
_STRUCK = re.compile("[<=>]\u0338")
_STRUCK_AS = {"<": "≮", "=": "≠", ">": "≯"}

# Twins of the marks that tags, lines and headers are made of.
_TWINS = {
    **dict.fromkeys("＜﹤〈《⟨⟪❮❰", "<"),
    **dict.fromkeys("＞﹥〉》⟩⟫❯❱", ">"),
    **dict.fromkeys("［﹝【〔〖〚⟦⁅❲", "["),
    **dict.fromkeys("］﹞】〕〗〛⟧⁆❳", "]"),
    **dict.fromkeys("：﹕ː꞉∶", ":"),
    **dict.fromkeys("＊﹡∗⁎", "*"),
    **dict.fromkeys("═━╍╌┅┉〓＝﹦", "="),
    **dict.fromkeys("／⁄∕⧸", "/"),
    # A blank of braille is seen as a blank.
    "\u2800": " ",
    "｜": "|",
}
# Blanks and combining marks between two parts of a mark.
_GAP = rf"[\s{_M}]*+"
# A tag: an angle before a letter, or before the marks that open one. `x < 5` and `a <= b` stay.
_TAG = re.compile(
    rf"<(?={_GAP}(?:[/!?|\[%$#@&\\\"'`{{(<]{_GAP}){{0,8}}[^\W\d]|{_GAP}[/!?|<\[%\\])([^<>]*+)(>?)"
)
# What stands in square brackets is read without its combining marks.
_BRACKETS = re.compile(r"\[([^\[\]]*+)(\]?)")
# A memory line: a tier's name and a colon, and tags as some models are taught to read them.
_TIER = re.compile(
    r"\s*+(?:working|history|patterns?|books?|documents?|memory[ _-]*bank|data[ _-]*gov[\w -]*+"
    r"|system|memory|mem)\s*:",
    re.IGNORECASE,
)
_ROLE = re.compile(
    r"\s*+/?\s*+(?:INST|SYS|SYSTEM|USER|ASSISTANT|TOOL|TOOL_CALLS|INSTRUCTIONS?|END)\s*+",
    re.IGNORECASE,
)
# The position in front of a memory line.
_POSITION = re.compile(
    rf"\[({_GAP}\d[\s\d{_M}]*+)\](?={_GAP}[\[(]{_GAP}[^\W\d][{_M}]*+(?:[\w -][{_M}]*+){{0,40}}:)"
)
# A bold label with a colon is how the block heads its sections, a double rule its ends.
_IN_BOLD = rf"[^*\s][{_M}]*+(?:[^*{_M}][{_M}]*+)"
_BOLD_LABEL = re.compile(rf"(?<!\*)\*{{2,}}+({_IN_BOLD}{{0,200}}?:{_GAP})\*{{2,}}+")
_BOLD_NAME = re.compile(rf"(?<!\*)\*{{2,}}+({_IN_BOLD}{{0,200}})\*{{2,}}+(?={_GAP}:)")
_RULED = re.compile(rf"(?<!=)={{3,}}+((?:[^={_M}][{_M}]*+){{1,200}})={{3,}}+")
_ID = re.compile(r"[^A-Za-z0-9._:@-]")


def escape_text(text: str) -> str:
    """The text as one line, whole and readable, that cannot be taken for a part of the block."""
    if _ORDINARY.fullmatch(text):
        return text
    return _escaped(text)


@reading
def _escaped(text: str) -> str:
    line = _visible(_BREAKS.sub(f" {LINE_BREAK} ", text)).strip(f" {LINE_BREAK}")
    for _ in range(MOST_ROUNDS):
        settled = _without_marks(line)
        if settled == line:
            return line or NOTHING
        line = settled
    return line.translate(_ALL_MARKS)


def escape_id(memory_id: str) -> str:
    """An id that ends where its bracket does. Ids of the store come back as they are."""
    return _ID.sub("_", memory_id) or UNKNOWN_ID


def cut_line(text: str, limit: int) -> str:
    """At most `limit` characters of the escaped text, cut at a word; an ellipsis says so."""
    line = escape_text(text)
    if len(line) <= limit:
        return line
    head = line[: limit - 1]
    whole = head.rpartition(" ")[0] if " " in head else head
    return (whole or head) + "…"


def _visible(text: str) -> str:
    """Without control, direction and other invisible characters; blanks of all kinds are one."""
    plain = _LOOSE_SELECTOR.sub("", _HIDDEN.sub("", text.translate(_PLAIN)))
    joined = _STRUCK.sub(lambda m: _STRUCK_AS[m[0][0]], _LOOSE_JOINER.sub("", plain))
    return _SPACES.sub(" ", _ON_SIGN.sub("", joined))


def _without_marks(line: str) -> str:
    """One round: a rule may open what another one closes."""
    line = _RULED.sub(r"==\1==", line)
    line = _TAG.sub(lambda m: f"‹{m[1]}{'›' if m[2] else ''}", line)
    line = _BRACKETS.sub(_bracket, _POSITION.sub(r"(\1)", line))
    # Other bold words and `2**3` keep their stars.
    return _BOLD_NAME.sub(r"*\1*", _BOLD_LABEL.sub(r"*\1*", line))


def _bracket(found: re.Match[str]) -> str:
    """Round brackets where the square ones are a mark of a memory or of a role."""
    bare = found[1].translate(_BARE)
    role = found[2] and _ROLE.fullmatch(bare)
    if not role and not _TIER.match(bare):
        return found[0]
    return f"({found[1]}{')' if found[2] else ''}"


def _plain(char: str) -> str:
    dropped = unicodedata.category(char) in _DROPPED and char not in _JOINERS
    return char if not dropped or char.isspace() else ""


_PLAIN = CharTable(_plain, _TWINS)
_BARE = CharTable(lambda char: "" if unicodedata.category(char)[0] == "M" else char)
_ALL_MARKS = str.maketrans("<>[]*=", "‹›()·-")


HEADER = "═══ CONTEXTUAL MEMORY ═══"
FOOTER = "═══════════════════════"
TITLES: dict[Section, str] = {
    "identity": "**User Identity:**",
    "preference": "**Core Preferences:**",
    "pattern": "**Proven Patterns:**",
    "always": "**Always Relevant:**",
    "instruction": "**Standing Instructions:**",
    "past": "**Past Experience:**",
    "relevant": "**Relevant Context:**",
}
STABLE_SECTIONS: tuple[Section, ...] = (
    "identity",
    "preference",
    "pattern",
    "always",
    "instruction",
)
BULLET = "• "
# Between the note of a line and its text: a text holds no two blanks in a row, so it ends no note.
TEXT_GAP = "  "
# A name must not end the note that it stands in.
_NO_BRACKETS = str.maketrans("()", "‹›")
NOTES = "**About This Message:**"
HINTS = "**About The User:**"
TOPIC = "**Recent Topic:** "
TOPIC_CHARS = 100  # client contract, "Context text"
OPENING = (HEADER, "")
BLANK_TOKENS = total_tokens(("",))
ETAG_CHARS = 32  # 128 bits


@dataclass(frozen=True, slots=True)
class SectionItem:
    """A memory and the section it belongs to. `passage`: what is shown of a long text. `outdated`:
    a newer memory of the same answer says otherwise."""

    section: Section
    item: MemoryItem
    passage: str | None = None
    outdated: bool = False

    @property
    def text(self) -> str:
        return self.item.text if self.passage is None else self.passage


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What there is to be told.

    Attributes:
        standing: for the stable part, in the order of their sections.
        recall: short sentences about the past, told before the memories of this question.
        found: memories for this question, best first; those that stand already are left away,
            unless they are `asked` for.
            The best ones find room first; what has room stands in the order of authority.
        asked: ids of what stands and is asked for by this question too: told again as found.
        topic: what the conversation was about, raw.
        nothing: what is said in place of memories for the question when none is worth showing.
        notes: sentences about the message itself, which come before all that is found.
        hints: what is known of the user that helps with the question, after these.
    """

    standing: Sequence[SectionItem] = ()
    recall: Sequence[str] = ()
    found: Sequence[SectionItem] = ()
    asked: frozenset[str] = frozenset()
    topic: str = ""
    nothing: str = ""
    notes: Sequence[str] = ()
    hints: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How large a block may be, and how it names things.

    Attributes:
        budget: tokens of the whole block.
        stable_share: of the budget, at most for the stable part.
        documents: the books tier is called `documents`, as the first client does.
    """

    budget: int
    stable_share: float = 0.5
    documents: bool = True


@dataclass(slots=True)
class _Page:
    """Rows as they are added; each costs its tokens, and `left` never goes below 0."""

    left: int
    documents: bool
    rows: list[str] = field(default_factory=list)
    lines: list[ContextLine] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def add(self, *rows: str, reserve: int = 0) -> bool:
        """All of the rows, or none when they and the reserve do not fit."""
        cost = total_tokens(rows) + reserve
        if cost > self.left:
            return False
        self.left -= cost
        self.rows += rows
        return True

    @property
    def numbered(self) -> int:
        return sum(line.numbered for line in self.lines)

    @property
    def text(self) -> str:
        return "".join(f"{row}\n" for row in self.rows)


@dataclass(frozen=True, slots=True)
class _Unplaced:
    """A line whose position is not known yet; note and text are escaped."""

    of: SectionItem
    name: str
    note: str
    text: str

    def row(self, position: int) -> str:
        place = f"[{position}] " if position else BULLET
        return f"{place}{self.name} ({self.note}){TEXT_GAP}{self.text}"

    def at(self, position: int) -> tuple[str, ContextLine]:
        row, item = self.row(position), self.of.item
        return row, ContextLine(
            position=position,
            section=self.of.section,
            tier=item.tier,
            memory_id=item.memory_id,
            note=self.note,
            text=self.text,
            item=item,
            tokens=total_tokens((row,)),
        )


def build_block(material: Material, limits: Limits) -> ContextBlock:
    """The block within the budget. Whole memories only; what does not fit is `left_out`."""
    left = limits.budget - total_tokens((FOOTER,))
    stable = _Page(min(left, int(limits.budget * limits.stable_share)), limits.documents)
    for section in STABLE_SECTIONS:
        placed = [one for one in material.standing if one.section == section]
        _section(stable, section, placed, opening=() if stable.rows else OPENING)
    spent = total_tokens(stable.rows)
    rest = _Page(left - spent, limits.documents, lines=list(stable.lines))
    _volatile(rest, material, () if stable.rows else OPENING)
    if stable.rows or rest.rows:
        rest.rows.append(FOOTER)
    shown = {line.memory_id for line in rest.lines}
    return ContextBlock(
        stable=stable.text,
        volatile=rest.text,
        etag=etag_of(stable.text),
        lines=tuple(rest.lines),
        tokens=spent + total_tokens(rest.rows),
        left_out=tuple(
            one for one in dict.fromkeys((*stable.left_out, *rest.left_out)) if one not in shown
        ),
    )


def etag_of(stable: str) -> str:
    """Equal exactly for equal stable parts."""
    return hashlib.sha256(stable.encode()).hexdigest()[:ETAG_CHARS]


def _volatile(page: _Page, material: Material, opening: tuple[str, ...]) -> None:
    for title, sentences in ((NOTES, material.notes), (HINTS, material.hints)):
        rows = [f"{BULLET}{escape_text(one)}" for one in sentences]
        if rows and page.add(*opening, title, *rows, ""):
            opening = ()
    shown = {line.memory_id: line.text for line in page.lines}
    # Of what stands by its instruction alone, the rest may be what the question asks for.
    found = [
        one
        for one in material.found
        if (text := shown.get(one.item.memory_id)) is None
        or one.item.memory_id in material.asked
        or (one.item.instruction and escape_text(one.text) not in text)
    ]
    past = [one for one in found if one.section == "past"]
    _section(page, "past", past, material.recall, opening=opening)
    rest = [one for one in found if one.section != "past"]
    said = (material.nothing,) if material.nothing and not rest else ()
    _section(page, "relevant", rest, said, opening=() if page.rows else opening)
    if material.topic.strip() and (page.rows or not opening):
        page.add(f"{TOPIC}{cut_line(material.topic, TOPIC_CHARS)}", "")


def _section(
    page: _Page,
    section: Section,
    placed: Sequence[SectionItem],
    sentences: Sequence[str] = (),
    *,
    opening: tuple[str, ...] = (),
) -> None:
    """The title, and the blank line at the end, come with the first line: no section is empty."""
    title, reserve = (*opening, TITLES[section]), BLANK_TOKENS
    for sentence in sentences:
        if page.add(*title, f"{BULLET}{escape_text(sentence)}", reserve=reserve):
            title, reserve = (), 0
    for one in _with_room(page, placed, title, reserve):
        row, line = one.at(0 if section in STABLE_SECTIONS else page.numbered + 1)
        if page.add(*title, row, reserve=reserve):
            title, reserve = (), 0
            page.lines.append(line)
    if not title:
        page.rows.append("")


def _with_room(
    page: _Page, placed: Sequence[SectionItem], title: tuple[str, ...], reserve: int
) -> list[_Unplaced]:
    """Those that fit, the first ones first, in the order of authority; the others are left out.

    Each is counted under the greatest position, so that they fit in whatever order they stand.
    """
    left, greatest = page.left, page.numbered + len(placed)
    fitting: list[_Unplaced] = []
    for one in placed:
        line = _unplaced(one, page.documents)
        cost = total_tokens((line.row(greatest),))
        cost += 0 if fitting else total_tokens(title) + reserve
        if cost > left:
            page.left_out.append(one.item.memory_id)
            continue
        left -= cost
        fitting.append(line)
    stands = bool(fitting) and fitting[0].of.section in STABLE_SECTIONS
    return fitting if stands else sorted(fitting, key=lambda line: authority_of(line.of.item))


def _unplaced(placed: SectionItem, documents: bool) -> _Unplaced:
    item, stable = placed.item, placed.section in STABLE_SECTIONS
    note = escape_text(note_of(item, stable=stable, outdated=placed.outdated))
    return _Unplaced(
        placed,
        name=f"[{tier_name(item.tier, documents)}:{escape_id(item.memory_id)}]",
        note=note.translate(_NO_BRACKETS),
        text=escape_text(placed.text),
    )
