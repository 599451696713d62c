"""The first client's editor of personalities: what it reads of a template, and what it saves."""

import re

# What the first client's editor offers, and the fields that it writes, in its order.
EDITOR_OPTIONS = {
    "tone": {"friendly", "professional", "casual", "formal"},
    "verbosity": {"concise", "balanced", "detailed"},
    "formality": {"casual", "neutral", "formal"},
    "priority": {"recent", "balanced", "patterns"},
    "pattern_trust": {"low", "medium", "high"},
}
EDITOR_FIELDS = {
    "identity": ("name", "role", "background"),
    "communication": ("tone", "verbosity", "formality"),
    "response_behavior": ("use_analogies", "use_examples", "use_humor"),
    "memory_usage": ("priority", "pattern_trust"),
}


def editor_reads(content: str, key: str) -> str:
    """The first value of that name on one line, up to a quote of either kind."""
    found = re.search(rf"""{key}:\s*["']?([^"'\n]+)["']?""", content)
    return found[1].strip() if found else ""


def editor_saves(content: str) -> str:
    """A template as the editor writes it after it read it: the fields that it knows."""
    lines = ["# Saved"]
    for section, keys in EDITOR_FIELDS.items():
        lines.append(f"{section}:")
        for key in keys:
            value = editor_reads(content, key)
            switch = value in ("true", "false") and section == "response_behavior"
            lines.append(f"  {key}: {value}" if switch else f'  {key}: "{value}"')
    lines.append(f'custom_instructions: "{editor_reads(content, "custom_instructions")}"')
    return "\n".join(lines)


def keeps(content: str) -> bool:
    """Whether loading and saving in the editor changes nothing that the editor shows."""
    saved = editor_saves(content)
    keys = [key for names in EDITOR_FIELDS.values() for key in names] + ["custom_instructions"]
    offered = all(editor_reads(content, key) in some for key, some in EDITOR_OPTIONS.items())
    return offered and all(editor_reads(content, key) == editor_reads(saved, key) for key in keys)
