"""Takes secrets and personal addresses out of a text, known by form or by the name before them.
Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rayapp.text.key_formats import API_KEY, MODEL_KEY

# A copy of a text for patterns to look at: escapes read, dashes and spaces alike.
#
# What a pattern finds in the copy is replaced in the text as it came.

# Soft hyphen, zero-width characters and marks of direction: nobody sees them within a key.
_UNSEEN_CHARS = "\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff"
_DASH_CHARS = "\u05be\u2010-\u2015\u2212\ufe58\ufe63\uff0d"
_SPACE_CHARS = "\u00a0\u2000-\u200a\u202f\u205f\u3000"
# A run of backslashes counts as one escape: JSON within JSON doubles them.
_FOLD = re.compile(
    r"(?<!\\)\\++(?:u001[bB]\[[0-9;]{0,20}[A-Za-z]|u[0-9A-Fa-f]{4}|[nrtbf\"'/])"
    f"|[{_UNSEEN_CHARS}]+|[{_DASH_CHARS}{_SPACE_CHARS}]"
)
_UNSEEN = re.compile(f"[{_UNSEEN_CHARS}]")
_DASH = re.compile(f"[{_DASH_CHARS}]")
_ESCAPED = {"n": "\n", "r": "\n", "t": "\t", "b": " ", "f": " "}
# An escape of four digits: `u` and these.
_CODE_POINT_CHARS = 5


@dataclass(frozen=True, slots=True)
class Folded:
    """`seen` is what patterns look at. `raw`: what each of its characters stands for in the
    text, None when it is the text."""

    seen: str
    raw: tuple[str, ...] | None

    @property
    def text(self) -> str:
        return self.seen if self.raw is None else "".join(self.raw)

    def replaced(self, spans: Sequence[tuple[int, int]], mark: str) -> Folded:
        """With `mark` in the place of every span of `seen`; these are in order and apart."""
        seen: list[str] = []
        raw: list[str] = []
        at = 0
        for first, last in [*spans, (len(self.seen), len(self.seen))]:
            seen.append(self.seen[at:first])
            if self.raw is not None:
                raw.extend(self.raw[at:first])
            if last > first:
                seen.append(mark)
                raw.extend(mark)
            at = last
        return Folded("".join(seen), None if self.raw is None else tuple(raw))


def has_unseen(text: str) -> bool:
    return _UNSEEN.search(text) is not None


def fold(text: str, unseen: str = "") -> Folded:
    """The copy; a run of characters that nobody sees becomes `unseen` in it."""
    seen: list[str] = []
    starts: list[int] = []
    at = 0
    for match in _FOLD.finditer(text):
        seen.append(text[at : match.start()])
        starts.extend(range(at, match.start()))
        one = _fold(match[0], unseen)
        if one:
            seen.append(one)
            starts.append(match.start())
        at = match.end()
    if not at:
        return Folded(text, None)
    seen.append(text[at:])
    starts.extend(range(at, len(text)))
    if starts:
        starts[0] = 0
    raw = tuple(text[first:last] for first, last in pairwise([*starts, len(text)]))
    return Folded("".join(seen), raw)


# The end of a line within a word, with the indentation, the mark of a quote or the backslash around
# it, and the run that goes on.
_WRAP = re.compile(
    r"(?<=[A-Za-z0-9_+/=.:-])\\?\r?\n[ \t>|]{0,16}(?=(?P<rest>[A-Za-z0-9_+/=.-]{4,}))"
)
_WORD_SWITCH = re.compile(r"[a-z][A-Z]|[A-Za-z][0-9]|[0-9][A-Za-z]")
# What a date, a version or a path is made of.
_PARTS = re.compile(r"[-/.:+]")


def join_lines(folded: Folded) -> Folded:
    """The copy with a word that was wrapped as one: no line ends in it. Only where the rest looks
    random, as that of a token does and that of a sentence does not, and begins no token itself."""
    seen: list[str] = []
    raw: list[str] = []
    at = 0
    for match in _WRAP.finditer(folded.seen):
        begins = any(one.match(folded.seen, match.end()) for one in (API_KEY, MODEL_KEY))
        if match.start() < at or begins or not _looks_random(match["rest"]):
            continue
        _extend(seen, raw, folded, at, match.start())
        raw[-1] += "".join(_raw_of(folded, match.start(), match.end()))
        at = match.end()
    if not at:
        return folded
    _extend(seen, raw, folded, at, len(folded.seen))
    return Folded("".join(seen), tuple(raw))


def _extend(seen: list[str], raw: list[str], folded: Folded, first: int, last: int) -> None:
    seen.append(folded.seen[first:last])
    raw.extend(_raw_of(folded, first, last))


def _raw_of(folded: Folded, first: int, last: int) -> Sequence[str]:
    return (folded.seen if folded.raw is None else folded.raw)[first:last]


def _looks_random(rest: str) -> bool:
    """A part of it has digits and letters in turns, or capitals inside."""
    return any(_WORD_SWITCH.search(part) for part in _PARTS.split(rest))


def _fold(found: str, unseen: str) -> str:
    """One character, or `unseen`."""
    if found[0] == "\\":
        escape = found.lstrip("\\")
        if len(escape) > _CODE_POINT_CHARS:  # a colour
            return unseen
        if len(escape) == 1:
            return _ESCAPED.get(escape, escape)
        found = chr(int(escape[1:], 16))
    if _UNSEEN.match(found):
        return unseen
    if _DASH.match(found):
        return "-"
    return " " if found.isspace() and found != "\n" else found


# Secrets that are known by the name they stand under, in both languages.
#
# A name alone is not enough where words or code stand under it too: then the value must look like a
# secret.

Match = re.Match[str]

# These are secrets with any letters before them: `PGPASSWORD`, `dbPassword`.
_PASSWORD = r"password|passwd|passphrase"
# These only as words of their own: after a sign, or as a word of `camelCase`.
_WORD_BEGINS = (
    r"(?:(?<![A-Za-z0-9])|(?-i:(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=APIKEY|TOKEN|SECRET)))"
)
_WORDS = (
    r"api[_ -]?key|access[_ -]?key|secret[_ -]?key|account[_-]?key|private[_-]?key"
    r"|shared[_-]?access[_-]?key|(?:access|auth|refresh|id|bot|session|bearer)[_-]?token"
    r"|client[_-]?secret|app[_-]?secret|secret|pwd|token"
)
# Which one of several it is: `apiKeyProd`, `PASSWORD_2`. Other words make another thing of it:
# a count of tokens, a policy for passwords.
_WHICH = (
    r"(?:[_-]?(?:production|prod|development|dev|staging|stage|test|live|main|default|old|new"
    r"|\d{1,2}))?"
)
_NAME = rf"(?P<name>{_PASSWORD}|{_WORD_BEGINS}(?:{_WORDS})){_WHICH}(?![A-Za-z0-9_-])"
# Names of many other things too.
_WEAK = frozenset({"secret", "pwd", "token"})

# `DB_PASSWORD=x`, `"api_key": "x"`, `AccountKey=x`: a value joined to a name that says what it is.
ASSIGNED = re.compile(
    r"(?i)" + _NAME + r"(?:[\"']\]?)?"
    r"(?P<sign>\s{0,2}=\s{0,2}|\s{0,2}:\s{0,2}(?=[\"']))(?P<quote>[\"']?)"
    r"(?P<value>[^\s\"'<>,;&]{4,})"
)
_HEBREW_NAME = (
    r"(?:סיסמה|סיסמא|סיסמת\s[א-ת]{1,20}|סיסמתו|סיסמתי|סיסמתה|סיסמתך|סיסמתנו|ססמה|ססמא"
    r"|מפתח\s(?:ה-?)?(?:API|גישה|סודי|פרטי)|(?:אסימון|טוקן)(?:\s(?:ה-?)?(?:API|גישה))?"
    r"|קוד\sה?(?:גישה|סודי))(?![א-ת])"
)
# A word that Hebrew puts behind the name: the new one, the present one.
_HEBREW_KIND = r"(?:\sה?(?:חדש|ישנ|זמני|נוכחי|ראשי|קבוע|אישי)[א-ת]{0,2}(?![א-ת]))?"
# `"api_key": "two words"`: the whole string, which may hold escaped quotes.
JSON_VALUE = re.compile(
    r"(?i)(?:" + _NAME + "|" + _HEBREW_NAME + r")(?P<quote>[\"'])\s{0,3}:\s{0,3}(?P=quote)"
    r"(?P<value>(?:(?!(?P=quote))[^\\\n]|\\.){4,500})(?:(?P=quote)|\Z)"
)
# The same in a string of JSON: its quotes have backslashes, those within it have more of them.
NESTED_VALUE = re.compile(
    r"(?i)(?:" + _NAME + "|" + _HEBREW_NAME + r")(?P<quote>\\{1,15}[\"'])\s{0,3}:\s{0,3}(?P=quote)"
    r"(?P<value>[^\n]{4,500}?)(?<!\\)(?P=quote)"
)
# `for the server`, `של דנה`, `לשרת`: whose it is.
_WHOSE = (
    r"(?:\s{1,2}(?:for|of|to|של(?:י|ך|ו|ה|נו|כם|כן|הם|הן)?|עבור|ל-?[א-תA-Za-z]{2,20})"
    r"(?:\s{1,2}[\w.-]{1,30}){0,3}?)?"
)
# `password: x`, `the password is x`, `הסיסמה שלי היא x`: a word of prose may follow, so a value
# counts only when it looks like one.
TOLD = re.compile(
    r"(?i)(?:"
    + _NAME
    + "|"
    + _HEBREW_NAME
    + _HEBREW_KIND
    + r"[\"']?)"
    + _WHOSE
    + r"(?:(?(name)\s{0,2}:|\s{0,2}[:=])\s{0,3}"
    r"|\s{1,2}(?:is|היא|הוא|הינה|הינו|זה)(?:\s{0,2}:)?\s{1,2}|\s{1,2}-\s{1,2})"
    r"[\"'`]?(?P<value>[^\s\"'`<>,;]{4,})"
)
AUTHORIZATION = re.compile(
    r"(?i)\bauthorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?"
    r"(?:(?P<scheme>[a-z][a-z0-9-]{1,30})\s{1,3})?(?P<value>[^\s\"',;]{8,})"
)
COOKIE = re.compile(
    r"(?i)\b(?:set-)?cookie[\"']?\s{0,3}:\s{0,3}[\"']?"
    r"(?P<value>[^\s\"'=;,:]{1,80}=[^\n\"']{4,4000})"
)
SIGNED_URL = re.compile(
    r"(?i)[?&](?P<name>sig|signature|x-amz-(?:signature|credential|security-token)"
    r"|x-goog-(?:signature|credential)|key|api_?key|access_token|auth|token|code)="
    r"(?P<value>[^&\s\"'<>#]{8,})"
)

_SCHEMES = frozenset({"bearer", "basic", "digest", "token", "negotiate", "apikey", "api-key"})
# Parameters of addresses that are seldom secrets: a code of a city, the key of a row.
_COMMON_PARAMETERS = frozenset({"key", "code"})
_FEWEST_RANDOM_CHARS = 12
_SWITCH = re.compile(r"(?i)(?<=[a-z])(?=\d)|(?<=\d)(?=[a-z])")
_FEWEST_SWITCHES = 2
_PLACEHOLDERS = frozenset(
    {"none", "null", "true", "false", "undefined", "required", "optional", "string"}
)
_VARIABLES = ("${", "$(", "{{", "process.env", "os.env")
_PATH = re.compile(r"(?:~|\.{1,2})?(?:[/\\][\w.@ -]{1,100}){1,40}[/\\]?\Z|[A-Za-z]:\\")
# A call, an item of a list; a plain name, which may be one of another object.
_CALL = re.compile(r"[A-Za-z_]+(?:\.[A-Za-z_]+)*[(\[]")
_IDENTIFIER = re.compile(r"[A-Za-z_]+(?:\.[A-Za-z_]+)*[):]*\Z")


def looks_secret(match: Match) -> bool:
    """Not a word of the sentence: it holds a digit or a sign inside, or is no plain word."""
    value = match["value"].rstrip(".!?)")
    return bool(re.search(r"\d|[^\w\s.()'\-]|_", value)) and "://" not in value


def is_told(match: Match) -> bool:
    """A value that looks like one; `pwd: /home/dana` is where somebody works."""
    if _is_placeholder(match["value"]):
        return False
    return looks_secret(match) and not (_is_weak(match) and _PATH.match(match["value"]))


def is_assigned(match: Match) -> bool:
    """`token=None` and `password: str` are code, `${TOKEN}` names a secret without telling it."""
    value = match["value"]
    if _is_placeholder(value):
        return False
    if match["quote"]:
        return not _is_weak(match) or _is_strange(value)
    if _CALL.match(value) or (_is_weak(match) and _PATH.match(value)):
        return False
    if match["name"].isupper() and match["sign"] == "=":  # a line of an environment
        return True
    return not _IDENTIFIER.match(value) and looks_secret(match)


def json_value(match: Match) -> bool:
    value = match["value"]
    if _is_placeholder(value):
        return False
    return not _is_weak(match) or (" " not in value and _is_strange(value))


def is_authorized(match: Match) -> bool:
    return (match["scheme"] or "").lower() in _SCHEMES or looks_secret(match)


def of_url(match: Match) -> bool:
    """A `key` or `code` counts when letters and digits alternate in it, as chance makes them."""
    value = match["value"]
    if match["name"].lower() not in _COMMON_PARAMETERS:
        return True
    random = len(_SWITCH.findall(value)) >= _FEWEST_SWITCHES
    return random and len(value) >= _FEWEST_RANDOM_CHARS


def _is_placeholder(value: str) -> bool:
    return value.lower() in _PLACEHOLDERS or value.lower().startswith(_VARIABLES)


def _is_weak(match: Match) -> bool:
    return (match["name"] or "").lower() in _WEAK


def _is_strange(value: str) -> bool:
    """A digit, or a sign that words do not hold."""
    path_or_address = "://" in value or _PATH.match(value)
    return bool(re.search(r"\d|[^\w\s.()'\-]", value)) and not path_or_address


# What stands in the place of a finding; a second pass leaves it alone.
_MARK = "[redacted:{}]"
_IS_MARK = re.compile(r"\[redacted:[a-z_]+\]")


@dataclass(frozen=True, slots=True)
class Redaction:
    """A text without its secrets, and how many of each kind were taken out."""

    text: str
    counts: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class _Rule:
    """What is taken out: the group `value`, or all when there is none.

    `hints`: a text without any of them has no finding, which is known at once.
    `sure`: whether a finding is one.
    """

    kind: str
    pattern: re.Pattern[str]
    hints: tuple[str, ...] = ()
    sure: Callable[[Match], bool] = lambda _: True


_PEM = re.compile(
    r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
    r".*?(?:-----END [A-Z0-9 ]{0,60}KEY(?: BLOCK)?-----|\Z)",
    re.DOTALL,
)
# A signed or encrypted token: header, payload, and up to three more parts.
_JWT = re.compile(r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]{4,}){1,4}")
_WEBHOOK = re.compile(
    r"https://(?:hooks\.slack\.com/(?:services|workflows)"
    r"|discord(?:app)?\.com/api/webhooks)/[A-Za-z0-9_/-]{20,}"
)
_BEARER = re.compile(r"(?i)(?P<before>\bbearer\s{1,3})(?P<value>[A-Za-z0-9._~+/=-]{16,})")
_URL_LOGIN = re.compile(
    r"(?i)(?P<before>(?<![a-z0-9+.-])[a-z][a-z0-9+.-]{1,30}://)"
    r"(?P<value>[^\s/?#@:\"'<>]{0,200}:[^\s/?#\"'<>]{1,400}|[^\s/?#@:\"'<>]{20,400})(?=@)"
)
# A Hebrew prefix may be joined to an address, so those of plain letters are found first.
_EMAIL = re.compile(
    r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9_][A-Za-z0-9._%+-]{0,63}@"
    r"(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![A-Za-z0-9])"
)
_ANY_EMAIL = re.compile(r"(?<![\w.%+-])\w[\w.%+-]{0,63}@(?:[\w-]{1,63}\.){1,8}[^\W\d_]{2,24}(?!\w)")
# A Hebrew prefix, with or without its hyphen, and a name with a colon may stand before a number.
_DIGIT_BEFORE = r"(?:(?<![\w+.,/=:#-])|(?<=[א-ת])|(?<=[א-ת]-)|(?<=[A-Za-zא-ת]:))(?<![\d][ ])"
_DIGIT_AFTER = r"(?![\w/=]|[.,:-]\d)"
_PHONE = re.compile(
    # +972 52-123-4567, 00972..., 972-52-1234567: mobiles, landlines and VoIP of Israel
    r"(?<![\w.,/=#+-])(?:\+|00)972[- .]{0,2}(?:\(0\)|0)?[- .]?(?:5\d|7\d|[23489])"
    r"[- .]?\d{3}[- .]?\d{2}[- .]?\d{2}"
    + _DIGIT_AFTER
    + "|"
    + _DIGIT_BEFORE
    # 052-1234567, 052-123-4567, (052) 1234567, 0521234567
    + r"\(?0(?:5\d|7[2-9])\)?[- .]?\d{3}[- .]?\d{2}[- .]?\d{2}"
    + _DIGIT_AFTER
    + "|"
    + _DIGIT_BEFORE
    # 02-1234567, (03) 123-4567: without a separator nine digits may be any number
    + r"(?:\(0[23489]\)[- .]?|0[23489][- .])\d{3}[- .]?\d{2}[- .]?\d{2}"
    + _DIGIT_AFTER
    # +1 (212) 555-0123, +44 20 7946 0958: a plus and a country code
    + r"|(?<![\w.,/=#+-])\+[1-9]\d{0,2}(?:[- .]?\(?\d{1,4}\)?){2,5}"
    + _DIGIT_AFTER
    + "|"
    + _DIGIT_BEFORE
    # (212) 555-0123, 212-555-0123: the separators say that it is one
    + r"(?:\([2-9]\d{2}\) ?|[2-9]\d{2}[-.])[2-9]\d{2}[-.]\d{4}"
    + _DIGIT_AFTER
)
# Nine digits with a check digit are also company numbers and codes of open data, so the number
# counts only where it is named.
_ISRAELI_ID = re.compile(
    r"(?i)(?P<before>(?:(?<![א-ת])[הבלומ]?(?:ת\.?[\"״'׳]?ז\.?|תעודת\sה?זהות|מס(?:פר|')\sזהות)"
    r"|\b(?:teudat\szehut|israeli\sid|national\sid|id\s(?:number|no\.?)))"
    r"(?:\s(?:מספר|מס'|number|no\.?|is))?\s{0,2}[:=#-]?\s{0,2})"
    r"(?P<value>\d{7,8}-\d|\d{8,9})(?!\d)"
)
_CARD = re.compile(
    r"(?<![\w.,/=-])(?:(?:4\d|5[1-5]|2[2-7]|6[05])\d{2}(?:[ -]?\d{4}){3}"
    r"|3[47]\d{2}[ -]?\d{6}[ -]?\d{5})(?!\w|[.,-]\d)"
)
_IBAN = re.compile(r"(?<![A-Za-z0-9])IL\d{2}(?:[ -]?\d){19}(?!\w)")

_PHONE_DIGITS = range(8, 16)  # E.164: at most 15
_FEWEST_LETTERS_AND_DIGITS = 2


def _digits(text: str) -> str:
    return "".join(one for one in text if one.isdigit())


def _checks_as_card(match: Match) -> bool:
    digits = _digits(match[0])
    total = 0
    for place, one in enumerate(reversed(digits)):
        value = int(one) * (1 + place % 2)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


def _is_phone(match: Match) -> bool:
    return len(_digits(match[0])) in _PHONE_DIGITS


def _is_model_key(match: Match) -> bool:
    """Random letters and digits, not words joined by hyphens."""
    return sum(one.isdigit() for one in match[0]) >= _FEWEST_LETTERS_AND_DIGITS


def _is_email(match: Match) -> bool:
    """`git@host` is the address of a repository."""
    return not match[0].lower().startswith("git@")


# Look at the text as it came: an escaped quote does not end a string.
_STRINGS = (
    _Rule("secret", JSON_VALUE, (":",), json_value),
    _Rule("secret", NESTED_VALUE, ("\\",), json_value),
)
# Of one word; a wrapped one is looked for as a whole first.
_TOKENS = (
    _Rule("token", _JWT, ("eyJ",)),
    _Rule("api_key", API_KEY),
    _Rule("api_key", MODEL_KEY, ("sk-",), _is_model_key),
    _Rule("webhook", _WEBHOOK, ("https://hooks.", "https://discord")),
)
_RULES: tuple[_Rule, ...] = (
    _Rule("private_key", _PEM, ("-----BEGIN ",)),
    *_TOKENS,
    _Rule("login", _URL_LOGIN, ("@",)),
    _Rule("token", AUTHORIZATION, ("uthorization", "UTHORIZATION"), is_authorized),
    _Rule("token", COOKIE, ("ookie", "OOKIE")),
    _Rule("token", _BEARER, ("earer", "EARER"), looks_secret),
    _Rule("token", SIGNED_URL, ("=",), of_url),
    _Rule("secret", ASSIGNED, ("=", ":"), is_assigned),
    _Rule("secret", TOLD, (), is_told),
    _Rule("email", _EMAIL, ("@",), _is_email),
    _Rule("email", _ANY_EMAIL, ("@",), _is_email),
    _Rule("iban", _IBAN, ("IL",)),
    _Rule("card", _CARD, (), _checks_as_card),
    _Rule("national_id", _ISRAELI_ID),
    _Rule("phone", _PHONE, (), _is_phone),
)
KINDS = frozenset(rule.kind for rule in _RULES)


def redact(text: str) -> Redaction:
    """`text` with `[redacted:<kind>]` in the place of every finding; what names it stays.

    Characters that nobody sees may stand within a secret or before it, so both are tried.
    """
    counts: dict[str, int] = {}
    for rule in _STRINGS:
        text = _apply(rule, Folded(text, None), counts).text
    for unseen in ("", " ") if has_unseen(text) else ("",):
        folded = fold(text, unseen)
        joined = join_lines(folded)
        if joined is not folded:
            for rule in _TOKENS:
                joined = _apply(rule, joined, counts)
            folded = fold(joined.text, unseen)
        for rule in _RULES:
            folded = _apply(rule, folded, counts)
        text = folded.text
    return Redaction(text, counts)


def without_marks(text: str) -> str:
    """What is left of a redacted text beside the marks."""
    return _IS_MARK.sub("", text)


def _apply(rule: _Rule, folded: Folded, counts: dict[str, int]) -> Folded:
    if rule.hints and not any(hint in folded.seen for hint in rule.hints):
        return folded
    group = "value" if "value" in rule.pattern.groupindex else 0
    spans = [
        match.span(group)
        for match in rule.pattern.finditer(folded.seen)
        if rule.sure(match) and not _IS_MARK.match(match[group])
    ]
    if not spans:
        return folded
    counts[rule.kind] = counts.get(rule.kind, 0) + len(spans)
    return folded.replaced(spans, _MARK.format(rule.kind))
