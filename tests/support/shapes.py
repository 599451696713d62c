"""Whether an answer is what the API document says, and no more."""

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel


def check_shape(model: type[BaseModel], answer: Any) -> None:
    """Raises ValidationError for a field that is missing or wrong, ValueError for one too many."""
    known = model.model_validate(answer).model_dump(mode="json", by_alias=True)
    if strange := sorted(_undocumented(answer, known)):
        raise ValueError(f"{model.__name__} documents no {', '.join(strange)}.")


def _undocumented(answer: Any, known: Any, path: str = "") -> Iterator[str]:
    if isinstance(answer, dict) and isinstance(known, dict):
        for name, value in answer.items():
            if name in known:
                yield from _undocumented(value, known[name], f"{path}{name}.")
            elif value is not None:
                yield f"{path}{name}"
    elif isinstance(answer, list) and isinstance(known, list):
        for value, other in zip(answer, known, strict=True):
            yield from _undocumented(value, other, path)
