"""Commands as a user types them: in a shell that knows none of our variables."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

BIN = Path(sys.executable).parent
# Generous: the machine that runs the tests may be busy.
LIMIT_S = 180.0


def typed(line: str, cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """What `bash` makes of the line in that folder; the programs of this environment are on PATH.

    Args:
        more: variables that the user has set.
    """
    env = {
        "PATH": f"{BIN}:{os.environ.get('PATH', os.defpath)}",
        "HOME": str(cwd),
        "LANG": "C.UTF-8",
        **more,
    }
    return subprocess.run(
        ["bash", "-c", line],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
