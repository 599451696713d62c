"""Strict JSON text: what every reader takes, and nothing else."""

from __future__ import annotations

import json
from typing import Any, NoReturn


def json_text(value: Any) -> str:
    """One line, letters of every script as they are."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(", ", ": "))


def is_json(text: str, *kinds: type) -> bool:
    """True for strict JSON whose value is of one of `kinds`."""
    try:
        return isinstance(json.loads(text, parse_constant=_refuse), kinds)
    except (ValueError, RecursionError):
        return False


def _refuse(name: str) -> NoReturn:
    raise ValueError(name)
