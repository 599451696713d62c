"""Writes `configs/reference.yaml`: every setting with its default, bounds and description.

`python -m rayapp.core.settings.reference` writes it; `--check` exits 1 when it is out of date.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import yaml
from annotated_types import Ge, Gt, Le, Lt, MinLen
from pydantic.fields import FieldInfo

from rayapp.core.settings.access import SettingsSection
from rayapp.core.settings.load import CONFIG_DIR
from rayapp.core.settings.model import Settings

REFERENCE = CONFIG_DIR / "reference.yaml"
HEAD = """\
# Every setting with its default. Do not edit: `python -m rayapp.core.settings.reference` writes it.
# Override one in a profile (configs/<profile>.yaml) or by its environment variable,
# RAYAPP_<CONCERN>__<NAME>, for example RAYAPP_HTTP__PORT=8080.
"""


def reference() -> str:
    """The whole file."""
    return HEAD + "\n".join(_lines(Settings(), "")) + "\n"


def _lines(model: SettingsSection, indent: str) -> Iterator[str]:
    for name, info in type(model).model_fields.items():
        value = getattr(model, name)
        if isinstance(value, SettingsSection):
            yield f"{indent}{name}:  # {info.description}"
            yield from _lines(value, indent + "  ")
        else:
            notes = " ".join([str(info.description), *_notes(info)])
            yield f"{indent}{name}: {_plain(value)}  # {notes}"


def _notes(info: FieldInfo) -> Iterator[str]:
    if get_origin(info.annotation) is Literal:
        yield f"One of {', '.join(str(value) for value in get_args(info.annotation))}."
    bounds = [text for part in info.metadata if (text := _bound(part))]
    if bounds:
        yield f"[{', '.join(bounds)}]"


def _bound(part: Any) -> str:
    for kind, sign, field in ((Ge, ">=", "ge"), (Gt, ">", "gt"), (Le, "<=", "le"), (Lt, "<", "lt")):
        if isinstance(part, kind):
            return f"{sign} {getattr(part, field)}"
    return "not empty" if isinstance(part, MinLen) else ""


def _plain(value: Any) -> str:
    value = str(value) if isinstance(value, Path) else value
    text: str = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=10_000)
    return text.removesuffix("\n...\n").strip()


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="rayapp-settings-reference")
    parser.add_argument("--check", action="store_true", help="only compare; exit 1 when different")
    options = parser.parse_args(argv)
    text = reference()
    if not options.check:
        REFERENCE.write_text(text, encoding="utf-8")
        return 0
    if REFERENCE.exists() and REFERENCE.read_text(encoding="utf-8") == text:
        return 0
    print(f"{REFERENCE.name} is out of date: run `python -m rayapp.core.settings.reference`.")
    return 1


if __name__ == "__main__":
    sys.exit(main())
