"""Reads the shipped personalities (YAML): the file name is the id, its first comment the text
that describes it."""

from __future__ import annotations

from pathlib import Path

from rayapp.assistant.personality.records import DEFAULT_TEMPLATE, Template
from rayapp.assistant.personality.rules.template import checked
from rayapp.core.errors import ConfigError, InvalidInput


def load_presets(folder: Path) -> dict[str, Template]:
    """All `*.yaml` in `folder` by id. ConfigError names the file that cannot be used."""
    presets = {path.stem: _preset(path) for path in sorted(folder.glob("*.yaml"))}
    if DEFAULT_TEMPLATE not in presets:
        raise ConfigError(f"No personality {folder.name}/{DEFAULT_TEMPLATE}.yaml; add it.")
    return presets


def _preset(path: Path) -> Template:
    try:
        content = path.read_text(encoding="utf-8")
        checked(content)
    except (InvalidInput, UnicodeDecodeError) as error:
        raise ConfigError(f"Personality {path.name} cannot be used: {error}") from None
    first = content.splitlines()[0]
    return Template(
        template_id=path.stem,
        name=path.stem.replace("_", " ").capitalize(),
        description=first.removeprefix("#").strip() if first.startswith("#") else "",
        content=content,
        preset=True,
    )
