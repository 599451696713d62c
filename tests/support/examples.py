"""How many generated examples a rule is tried with."""

import os

# Set by `python -m tests.check` without `--all`: the whole check and a test run by hand try all.
QUICK = "QUICK_EXAMPLES"
QUICK_SHARE = 5
# So few miss what is not rare.
FEWEST = 10


def examples(full: int) -> int:
    """`full`, or in the quick check a fifth of it."""
    if not os.environ.get(QUICK):
        return full
    return min(full, max(FEWEST, full // QUICK_SHARE))
