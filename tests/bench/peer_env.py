"""The environment of the peers: made on request, apart from the project's dependencies."""

import subprocess
import sys
from pathlib import Path

from rayapp.core.errors import ConfigError

# What the numbers are of; the client of Qdrant fits the server that `tests.support` fetches. From
# `orjson` on it is what a worker itself imports: the protocol, the embedder and its language rules.
PINS = (
    "chromadb==1.5.9",
    "mem0ai==2.2.1",
    "qdrant-client==1.17.1",
    "fastembed==0.9.1",
    "stop-words==2025.11.4",
    "orjson>=3.10",
    "tokenizers>=0.20",
    "numpy>=2",
    "simplemma==2.0.0",
)


def python_of(folder: Path) -> Path:
    """The interpreter of the environment.

    Raises:
        ConfigError: there is none.
    """
    python = folder.absolute() / "bin" / "python"
    if not python.exists():
        raise ConfigError(f"No environment of the peers in {folder}: add --make-env to make it.")
    return python


def make_env(folder: Path) -> None:
    """A virtual environment with the pinned peers; about 400 MB.

    Raises:
        ConfigError: pip could not install them.
    """
    steps = (
        [sys.executable, "-m", "venv", str(folder)],
        [str(folder.absolute() / "bin" / "python"), "-m", "pip", "install", "--quiet", *PINS],
    )
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True, check=False)
        if done.returncode:
            last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
            raise ConfigError(
                f"The peers' environment could not be made ({' '.join(last)}): "
                "remove the folder and try again with a package registry in reach."
            )
