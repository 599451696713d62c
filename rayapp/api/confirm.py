"""The word that whatever deletes for good asks for."""

from rayapp.core.errors import InvalidInput
from rayapp.core.settings.model import CompatSettings
from rayapp.wire.bases import CONFIRM


def check_confirmed(
    word: str | bool | None, what: str, *, unasked: CompatSettings | None = None
) -> None:
    """`unasked`: of a route of the first client, which sends no word (decision 0080).

    Raises InvalidInput, code `confirm_needed`: another word, or none, was sent.
    """
    if word != CONFIRM and not (unasked and unasked.first_client):
        raise InvalidInput(
            f"{what}; send confirm={CONFIRM} if you mean it.",
            code="confirm_needed",
            details={"field": "confirm"},
        )
