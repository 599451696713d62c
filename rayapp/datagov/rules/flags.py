"""What the columns of a table tell about, by their names in Hebrew and English. Pure.

The source labels columns by substrings: `X` is a phone there, `RouteLength` too, and every
resource carries the labels of its whole dataset. So only words of a name count here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from rayapp.datagov.records import Field, Resource

_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD = re.compile(r"[^\W_]+(?:\"[^\W_]+)?")
_PREFIXES = (re.compile("^[הבלמוכש](?=[א-ת]{3})"), re.compile("^[הבלמוכש]{2}(?=[א-ת]{3})"))
_TRAILING_DIGITS = re.compile(r"\d+$")


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


PHONE = _set(
    "phone phones telephone tel telefon mobile cell cellphone cellular fax phonenumber hotline "
    "טלפון טלפונים נייד סלולרי פקס טל טלפקס מוקד"
)
ADDRESS = _set(
    "address addresses adress addr street streets zip zipcode postcode streetname streetcode "
    "כתובת כתובות רחוב רחובות מיקוד מען rehov rechov ktovet"
)
LOCATION = _set(
    "lat lon lng long latitude longitude coordinate coordinates coord coords itm utm wgs84 geo "
    "gps x y xcoord ycoord geom geometry city town settlement locality location locations "
    "district region regions municipality neighborhood neighbourhood county עיר ערים ישוב יישוב "
    'ישובים יישובים מיקום מחוז מחוזות נפה אזור איזור רשות שכונה קואורדינטה קואורדינטות נ"צ נצ '
    "מועצה yishuv ishuv"
)
EMAIL = _set('email emails mail דוא"ל דואל מייל אימייל')
DATE = _set(
    "date dates datetime timestamp year month quarter day yearmonth תאריך תאריכים שנה שנת חודש "
    "רבעון יום מועד תקופה taarich shana shnat hodesh"
)
# Words that make a name speak of something else although one of the above stands in it.
NOT_PHONE = frozenset({"length"})
NOT_EMAIL = frozenset({"box", "רגיל"})
NOT_LOCATION = frozenset({"exposure"})
PAIRS: tuple[tuple[str, frozenset[str]], ...] = (
    ("has_email", frozenset({"דואר", "אלקטרוני"})),
    ("has_email", frozenset({"e", "mail"})),
    ("has_location", frozenset({"קו", "רוחב"})),
    ("has_location", frozenset({"קו", "אורך"})),
)
# Names written together, such as STARTDATE and addressheb. A mandate is not a date.
ENDINGS = (("has_date", "date"), ("has_phone", "phone"), ("has_email", "email"))
BEGINNINGS = (("has_address", "address"), ("has_location", "city"), ("has_email", "email"))
NOT_TOGETHER = ("update", "candidate", "mandate", "validate", "microphone")
# An axis in a short name (X, Y_ITM, long) is anything in a longer one (GovXEventDate, LongName).
AXES = frozenset({"x", "y", "long"})
AXIS_WORDS = 2

_RULES: tuple[tuple[str, frozenset[str], frozenset[str]], ...] = (
    ("has_phone", PHONE, NOT_PHONE),
    ("has_address", ADDRESS, EMAIL),
    ("has_location", LOCATION, NOT_LOCATION),
    ("has_email", EMAIL, NOT_EMAIL),
    ("has_date", DATE, frozenset()),
)


@lru_cache(maxsize=16_384)
def flags_of_name(name: str) -> frozenset[str]:
    """The flags that a column called `name` sets."""
    words = _words(name)
    found = {flag for flag, wanted, other in _RULES if words & wanted and not words & other}
    found |= {flag for flag, pair in PAIRS if pair <= words and not words & NOT_EMAIL}
    for word in words:
        if word.isascii() and not word.endswith(NOT_TOGETHER):
            found |= {flag for flag, end in ENDINGS if word.endswith(end)}
            found |= {flag for flag, start in BEGINNINGS if word.startswith(start)}
    if "has_email" in found and not words & ADDRESS - {"address", "addresses", "כתובת"}:
        found.discard("has_address")  # the address is that of a mailbox
    return frozenset(found)


def flags_of(fields: Iterable[Field]) -> frozenset[str]:
    """The flags that a table with these columns has; a time column is a date by its type."""
    found: set[str] = set()
    for one in fields:
        found |= flags_of_name(one.name)
        if one.type.lower().startswith(("timestamp", "date")):
            found.add("has_date")
    return frozenset(found)


def flags_of_all(resources: Iterable[Resource]) -> frozenset[str]:
    found: set[str] = set()
    for resource in resources:
        found |= flags_of(resource.fields)
    return frozenset(found)


def _words(name: str) -> frozenset[str]:
    """Lower-case words of a name: `contactPhone_2` is contact, phone; `בכתובת` is כתובת too."""
    plain = [match.group().lower() for match in _WORD.finditer(_CAMEL.sub(" ", name))]
    words: set[str] = set()
    for word in plain:
        words |= {word, _TRAILING_DIGITS.sub("", word)}
        words |= {prefix.sub("", word) for prefix in _PREFIXES}
    axes = frozenset() if len(plain) <= AXIS_WORDS else AXES
    return frozenset(words - {""} - axes)
