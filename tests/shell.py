"""Commands as a user types them: in a shell that knows none of our variables."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
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
    return ended(["bash", "-c", line], cwd, env)


def ended(
    command: Sequence[str | Path], folder: Path, env: Mapping[str, str], limit_s: float = LIMIT_S
) -> subprocess.CompletedProcess[str]:
    """The command in that folder, once it has ended, with what it printed."""
    return subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=limit_s,
        check=False,
    )


def printed(
    command: Sequence[str | Path], folder: Path, env: Mapping[str, str], limit_s: float = LIMIT_S
) -> str:
    """What it printed; its whole output when it fails."""
    done = ended(command, folder, env, limit_s)
    assert done.returncode == 0, f"{command} failed:\n{done.stdout}\n{done.stderr}"
    return done.stdout
