"""How many generated examples a rule is tried with."""

import os

# One of so many is tried; not set where a test is run by hand, which tries all.
QUICK = "QUICK_EXAMPLES"
# So few miss what is not rare.
FEWEST = 10


def examples(full: int) -> int:
    """`full`, or the share that is asked for."""
    if not (share := os.environ.get(QUICK)):
        return full
    return min(full, max(FEWEST, full // int(share)))
