"""Secrets that are known by the name they stand under, in both languages. Pure.

A name alone is not enough where words or code stand under it too: then the value must look like a
secret.
"""

from __future__ import annotations

import re

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
    r"(?P<value>(?:(?!(?P=quote))[^\\\n]|\\.){4,500}+)(?:(?P=quote)|\Z)"
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
_CALL = re.compile(r"[A-Za-z_]+(?:\.[A-Za-z_]+)*+[(\[]")
_IDENTIFIER = re.compile(r"[A-Za-z_]+(?:\.[A-Za-z_]+)*+[):]*\Z")


def looks_secret(match: Match) -> bool:
    """Not a word of the sentence: it holds a digit or a sign inside, or is no plain word."""
    value = match["value"].rstrip(".!?)")
    return bool(re.search(r"\d|[^\w\s.()'\-]|_", value)) and "://" not in value


def told(match: Match) -> bool:
    """A value that looks like one; `pwd: /home/dana` is where somebody works."""
    if _is_placeholder(match["value"]):
        return False
    return looks_secret(match) and not (_is_weak(match) and _PATH.match(match["value"]))


def assigned(match: Match) -> bool:
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


def authorized(match: Match) -> bool:
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
