"""The word that whatever deletes for good asks for."""

from rayapp.core.errors import InvalidInput
from rayapp.wire.bases import CONFIRM


def check_confirmed(word: str | None, what: str) -> None:
    """Raises InvalidInput, code `confirm_needed`: another word, or none, was sent."""
    if word != CONFIRM:
        raise InvalidInput(
            f"{what}; send confirm={CONFIRM} if you mean it.",
            code="confirm_needed",
            details={"field": "confirm"},
        )
