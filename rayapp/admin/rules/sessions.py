"""User ids that were browser sessions of the first client: 64 hexadecimal digits. Pure."""

from __future__ import annotations

import re

# Anchored at both ends; as text, because a database matches it too.
SESSION_USER = "^[0-9a-f]{64}$"
# Days without a change after which nobody comes back to such a session.
QUIET_DAYS = 30


def is_session_user(user_id: str) -> bool:
    # `fullmatch`: `$` would let a trailing newline pass.
    return re.fullmatch(SESSION_USER, user_id) is not None
