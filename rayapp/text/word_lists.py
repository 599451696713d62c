"""Lists of words that are data: `configs/language/lists/words.yaml`, read once."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import yaml

from rayapp.core.settings.load import CONFIG_DIR

FILE = CONFIG_DIR / "language" / "lists" / "words.yaml"
_LOADER: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def words_of(name: str) -> tuple[str, ...]:
    """The words of a list, in their order."""
    return tuple(_lists()[name].split())


@cache
def _lists() -> Mapping[str, str]:
    found: dict[str, str] = yaml.load(FILE.read_text(encoding="utf-8"), Loader=_LOADER)
    return found
