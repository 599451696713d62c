"""The names that people give categories, formats and flags in a filter, as the items spell them."""

from __future__ import annotations

import difflib

from rayapp.datagov.records import FLAGS
from rayapp.datagov.rules.categories import CATEGORIES
from rayapp.text.normalize import normalize

# How alike two names are before one is offered for the other, 0..1 (difflib's own default).
ALIKE = 0.6
FLAG_PREFIX = "has_"

# Other names of a category, beside its slug and its names in both languages.
_ALIASES: dict[str, tuple[str, ...]] = {
    "communications": ("communication",),
    "culture": ("תרבות", "ספורט", "sport"),
    "demographics": ("demography", "population", "דמוגרפיה", "אוכלוסייה", "אוכלוסיה"),
    "economy": ("economics", "כלכלה"),
    "environment": ("סביבה", "איכות הסביבה", "הגנת הסביבה"),
    "finance": ("budget", "כספים", "אוצר", "פיננסים", "תקציב"),
    "general": ("כללי",),
    "geography": ("maps", "גיאוגרפיה", "גאוגרפיה", "מיפוי"),
    "housing": ("דיור", "שיכון"),
    "immigration": ("עלייה", "עליה", "הגירה", "קליטה"),
    "justice": ("law", "legal", "משפט", "משפטים"),
    "municipal": ("municipalities", "local authorities", "רשויות מקומיות", "עיריות"),
    "religion": ("religious services", "דת", "שירותי דת"),
    "technology": ("science", "טכנולוגיה", "מדע"),
    "tourism": ("תיירות",),
    "transportation": ("transport", "תחבורה"),
    "water": ("מים",),
    "welfare": ("social welfare", "רווחה"),
}


def _key(name: str) -> str:
    return normalize(name).casefold()


_SLUGS: dict[str, str] = {
    _key(name): slug
    for slug, category in CATEGORIES.items()
    for name in (*_ALIASES.get(slug, ()), category.he, category.en, slug)
}


def category_slug(name: str) -> str | None:
    """The slug of a category by its slug or one of its names, in either language."""
    return _SLUGS.get(_key(name))


def nearest_category(name: str) -> str | None:
    """The category that an unknown name most likely means; None when it looks like no other."""
    found = difflib.get_close_matches(_key(name), _SLUGS, n=1, cutoff=ALIKE)
    return _SLUGS[found[0]] if found else None


def format_spellings(name: str) -> tuple[str, ...]:
    """A format as the catalogue spells it, and as memories of a user may."""
    plain = name.strip().lstrip(".")
    return tuple(dict.fromkeys((plain.lower(), plain, plain.upper())))


def flag_spellings(name: str) -> tuple[str, ...]:
    """A flag by its name, with or without the `has_` that the catalogue's flags begin with."""
    plain = name.strip()
    full = FLAG_PREFIX + plain.lower()
    return (plain, full) if full in FLAGS else (plain,)
