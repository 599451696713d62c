"""Where the service of a data directory listens: `<data>/run/state.json`, written by `up`."""

import json
import os
import shlex
from pathlib import Path
from typing import Any

from rayapp.core.errors import ConfigError

DEFAULT_URL = "http://127.0.0.1:8000"
DEFAULT_DATA_DIR = ".rayapp"
MAKE_KEY = "name the file that holds your key, or make one with `rayapp keys create NAME > FILE`"


def data_dir_of(given: Path | None) -> Path:
    """The given directory, else `RAYAPP_DATA__DIR`, else `.rayapp`."""
    return given or Path(os.environ.get("RAYAPP_DATA__DIR") or DEFAULT_DATA_DIR)


def read_state(data_dir: Path) -> dict[str, Any] | None:
    """The state of the stack of this directory, None when none was started there.

    Raises ConfigError: the file is there and is not a JSON object.
    """
    path = data_dir / "run" / "state.json"
    if not path.exists():
        return None
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read ({error}): run `rayapp up` again.") from None
    if not isinstance(state, dict):
        raise ConfigError(f"{path} must hold a JSON object: run `rayapp up` again.")
    return state


def service_url(url: str | None, data_dir: Path | None) -> str:
    """`url` when given, else that of the stack of `data_dir`, which is as in `data_dir_of`.

    Where nobody named a directory and no stack runs in the default one: the default port.
    Raises ConfigError: no stack runs in the directory that was named. Another one may have the
    default port, and what is meant for this one would be written there.
    """
    if url:
        return url.rstrip("/")
    folder = data_dir_of(data_dir)
    state = read_state(folder) or {}
    known = str(state.get("http_url") or "").rstrip("/")
    if data_dir is None and not os.environ.get("RAYAPP_DATA__DIR"):
        return known or DEFAULT_URL
    if not known or state.get("phase") == "failed":
        raise ConfigError(
            f"No stack runs for {folder}: start it with `rayapp up --data-dir "
            f"{shlex.quote(str(folder))}`, or name --url."
        )
    return known


def read_key(path: Path | None) -> str | None:
    """The bearer key in the file, None without a file.

    Raises ConfigError: it cannot be read or is empty.
    """
    if path is None:
        return None
    try:
        key = path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        raise ConfigError(f"There is no key file {path}: {MAKE_KEY}.") from None
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text"
        raise ConfigError(
            f"The key file {path} cannot be read ({why}): name a file that you may read and that "
            "holds one key."
        ) from None
    if not key:
        raise ConfigError(f"The key file {path} is empty: write the key of `rayapp keys create`.")
    return key


def key_advice(create: str, options: str = "", *, begin: str = "") -> str:
    """What to do when a service asks for keys and none was given.

    Args:
        create: owner and scopes for `rayapp keys create`.
        options: further options of that command, as a shell takes them.
        begin: what has to be done before.
    """
    command = f"rayapp keys create {create} {options}".rstrip()
    return (
        f"This service asks for a key: {begin}make one with `{command} > my.key`, and give it "
        "with `--api-key-file my.key`."
    )
