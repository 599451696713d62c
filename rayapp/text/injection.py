"""Sentences by which a text tries to command a model or its reader, in both languages.

A finding is a warning: people quote such sentences. Nothing is removed because of one.
"""

from __future__ import annotations

import re

_HE_IGNORE = "(?:התעלמו|התעלמי|התעלם|שכחו|שכחי|שכח|אל תתייחסו|אל תתייחסי|אל תתייחס)"
_HE_RULES = "(?:ההוראות|הנחיות|ההנחיות|הוראות|הכללים|ההודעות)"
_EN_RULES = "(?:instructions?|prompts?|rules|messages|directions|guidelines)"

INJECTIONS: tuple[tuple[str, str], ...] = (
    (
        "ignore_instructions",
        rf"\b(?:ignore|disregard|forget|override)\b[^.\n]{{0,40}}\b(?:previous|prior|above|earlier|"
        rf"all|your|system)\b[^.\n]{{0,30}}\b{_EN_RULES}\b"
        rf"|{_HE_IGNORE}[^.\n]{{0,30}}{_HE_RULES}",
    ),
    (
        "new_role",
        r"\byou are now\b|\bfrom now on,? you\b|\bact as (?:the )?(?:system|developer|admin)\b"
        r"|\bnew system prompt\b"
        r"|(?:אתה|את) (?:עכשיו|מעכשיו|כעת)\b|מעכשיו (?:אתה|את)\b|התנהג כ(?:מערכת|מנהל|מפתח)",
    ),
    (
        "reveal_prompt",
        r"\b(?:reveal|print|repeat|show|output)\b[^.\n]{0,30}\b(?:system prompt|hidden prompt|"
        r"initial instructions)\b"
        r"|(?:חשוף|חשפי|הדפס|הדפיסי|הצג|הציגי|גלה|גלי)[^.\n]{0,30}(?:הנחיות המערכת|הוראות המערכת|"
        r"פרומפט)",
    ),
    (
        "hide_from_user",
        r"\b(?:do not|don't|never) (?:tell|inform|mention (?:this )?to|show) the user\b"
        r"|(?:אל|לא) (?:תספר|תספרי|תגלה|תגלי|תגיד|תגידי|לספר|לגלות)[^.\n]{0,15}למשתמש",
    ),
    (
        "chat_token",
        r"<\|[a-z_]{2,30}\|>|\[/?INST\]|<</?SYS>>"
        r"|^[^\S\n]*+#{2,}+[^\S\n]*+(?:system|instruction)s?[^\S\n]*+:?[^\S\n]*+$",
    ),
    (
        "hidden_channel",
        # A picture whose address carries data to its host.
        r"!\[[^\]\n]{0,200}+\]\(https?://(?=[^)\s]{0,2000}+\))"
        r"[^)\s]{0,500}[?&][^)\s=]{1,50}+=[^)\s]{8}",
    ),
    ("hidden_text", "[\u202a-\u202e\u2066-\u2069]|[\U000e0000-\U000e007f]{2,}"),
)
_COMPILED = tuple(
    (kind, re.compile(pattern, re.IGNORECASE | re.MULTILINE)) for kind, pattern in INJECTIONS
)


def injection_kinds(text: str) -> list[str]:
    """Names of the patterns that occur, each once, in the order of the table."""
    return [kind for kind, pattern in _COMPILED if pattern.search(text)]
