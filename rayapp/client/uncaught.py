"""What a program prints that ends with an error of this client: where it asked, and the sentence.

Python's own report of an uncaught error shows every step inside asyncio and this package, which
say nothing about what to do (decision 0050).
"""

from __future__ import annotations

import asyncio
import sys
import traceback
from pathlib import Path
from types import TracebackType

from rayapp.core.errors import RayappError

# Steps in files below these are left out.
HIDDEN = tuple(str(Path(file).parent) for file in (asyncio.__file__, __file__))


def shorten() -> None:
    """Reports of `RayappError` are short from now on; a program's own `sys.excepthook` stays."""
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _report


def _report(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if not isinstance(error, RayappError):
        sys.__excepthook__(kind, error, trace)
        return
    found = traceback.TracebackException(kind, error, trace, compact=True)
    own = [step for step in found.stack if not step.filename.startswith(HIDDEN)]
    found.stack = traceback.StackSummary.from_list(own)
    found.print(file=sys.stderr)
