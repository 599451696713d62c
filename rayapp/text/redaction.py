"""Takes secrets and personal addresses out of a text. Pure.

Every pattern begins where no other character of its kind stands and every repetition has a bound
or an end that its own characters cannot be, so the work grows with the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rayapp.text import named_secrets as names
from rayapp.text.folding import Folded, fold, has_unseen

# What stands in the place of a finding; a second pass leaves it alone.
_MARK = "[redacted:{}]"
_IS_MARK = re.compile(r"\[redacted:[a-z_]+\]")

Match = re.Match[str]


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
# Keys whose providers gave them a form of their own. Sources: the providers' pages on the formats
# of their tokens, and the public rules of secret scanners.
_API_KEY = re.compile(
    r"(?<![A-Za-z0-9_-])(?:"
    r"(?:AKIA|ASIA|AGPA|AIDA|AROA|ANPA|ANVA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])"
    r"|gh[pousr]_[A-Za-z0-9]{30,255}|github_pat_[A-Za-z0-9_]{22,255}"
    r"|gl(?:pat|dt|rt|ptt|cbt)-[A-Za-z0-9_-]{20,255}"
    r"|xox[abeoprs]-[A-Za-z0-9-]{10,255}|xapp-[A-Za-z0-9-]{10,255}"
    r"|AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,}|GOCSPX-[A-Za-z0-9_-]{20,}"
    r"|(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/=]{24,}"
    r"|rk_[A-Za-z0-9_-]{43}"
    r"|npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_-]{50,}|hf_[A-Za-z0-9]{30,}"
    r"|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}|key-[0-9a-f]{32}(?![A-Za-z0-9])"
    r"|(?:AC|SK)[0-9a-f]{32}(?![A-Za-z0-9])|dop_v1_[a-f0-9]{64}"
    r"|[0-9]{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])"
    r"|(?:pplx|gsk|xai|tvly|r8|fc|jina)[-_](?:dev-)?[A-Za-z0-9]{24,}"
    r")"
)
# Short prefixes need more: `sk-learn-contrib-project-template` is a name.
_MODEL_KEY = re.compile(r"(?<![A-Za-z0-9_-])sk-[A-Za-z0-9_-]{20,}")
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
    _Rule("secret", names.JSON_VALUE, (":",), names.json_value),
    _Rule("secret", names.NESTED_VALUE, ("\\",), names.json_value),
)
_RULES: tuple[_Rule, ...] = (
    _Rule("private_key", _PEM, ("-----BEGIN ",)),
    _Rule("token", _JWT, ("eyJ",)),
    _Rule("api_key", _API_KEY),
    _Rule("api_key", _MODEL_KEY, ("sk-",), _is_model_key),
    _Rule("webhook", _WEBHOOK, ("https://hooks.", "https://discord")),
    _Rule("login", _URL_LOGIN, ("@",)),
    _Rule("token", names.AUTHORIZATION, ("uthorization", "UTHORIZATION"), names.authorized),
    _Rule("token", names.COOKIE, ("ookie", "OOKIE")),
    _Rule("token", _BEARER, ("earer", "EARER"), names.looks_secret),
    _Rule("token", names.SIGNED_URL, ("=",), names.of_url),
    _Rule("secret", names.ASSIGNED, ("=", ":"), names.assigned),
    _Rule("secret", names.TOLD, (), names.told),
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
        text = _applied(rule, Folded(text, None), counts).text
    for unseen in ("", " ") if has_unseen(text) else ("",):
        folded = fold(text, unseen)
        for rule in _RULES:
            folded = _applied(rule, folded, counts)
        text = folded.text
    return Redaction(text, counts)


def without_marks(text: str) -> str:
    """What is left of a redacted text beside the marks."""
    return _IS_MARK.sub("", text)


def _applied(rule: _Rule, folded: Folded, counts: dict[str, int]) -> Folded:
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
