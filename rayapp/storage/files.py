"""Small readers of files: dictionaries, personalities, recipes."""

import contextlib
import os
import secrets
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import TypeAdapter, ValidationError

from rayapp.assistant.personality.rules import DEFAULT_TEMPLATE, Template, check
from rayapp.assistant.prompt.rules import ModelWindow
from rayapp.assistant.tools.rules.table import ANY_OTHER, ToolRow
from rayapp.core.errors import ConfigError, InvalidInput
from rayapp.search.rules.confidence import Calibration, file_name, parse_calibration
from rayapp.search.rules.knowledge import (
    CROSSED_SIGNALS,
    ENCODED_SIGNALS,
    SIGNALS,
    Forms,
    KnowledgeModel,
    KnowledgeRule,
    parse_knowledge,
)
from rayapp.search.rules.latest_words import LatestTable, LatestWords, latest_words
from rayapp.search.rules.recipes import Recipe, parse_recipe, parsed
from rayapp.text.expansions import Expansions
from rayapp.understanding.derived.rules.wording import DerivedWords
from rayapp.understanding.rules.importance import ImportanceParams
from rayapp.understanding.rules.signals import SignalTable, SignalWords
from rayapp.understanding.statements.rules.registry import Ontology
from rayapp.understanding.statements.rules.tables import (
    EmotionRow,
    Phrases,
    RoleRow,
    Tables,
    Times,
    Valued,
)

T = TypeVar("T")
# As many as the hash that signs with it takes in.
SECRET_BYTES = 48


def kept_secret(path: Path) -> str:
    """The secret in a file that only its owner may read; made by the first who asks."""
    with contextlib.suppress(FileNotFoundError):
        return path.read_text(encoding="ascii")
    path.parent.mkdir(parents=True, exist_ok=True)
    # Linked as a whole: another process reads all of it, or makes none.
    with tempfile.NamedTemporaryFile("w", dir=path.parent, encoding="ascii") as file:
        file.write(secrets.token_urlsafe(SECRET_BYTES))
        file.flush()
        os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(file.name, path)
    return path.read_text(encoding="ascii")


# libyaml parses thousands of entries about ten times faster than the pure Python loader.
_LOADER: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def load_expansions(folder: Path) -> Expansions:
    """All `*.yaml` files under `folder`, any depth, in path order.

    Raises ConfigError: no such folder, unreadable YAML, or an entry that breaks a rule.
    """
    if not folder.is_dir():
        raise ConfigError(f"No folder of expansions at {folder}; create it or change the path.")
    paths = sorted(folder.rglob("*.yaml"))
    return Expansions({path.relative_to(folder).as_posix(): _read(path) for path in paths})


def _read(path: Path) -> Any:
    try:
        with path.open(encoding="utf-8") as file:
            return yaml.load(file, Loader=_LOADER)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path.name} is not valid UTF-8 YAML: {error}") from None


# Reads the shipped personalities (YAML): the file name is the id, its first comment the text that
# describes it.


def load_windows(path: Path) -> tuple[ModelWindow, ...]:
    """Context windows by prefix of a model's name. ConfigError names what is wrong in the file."""
    rows: Any = _read(path) if path.is_file() else None
    try:
        found = tuple(
            ModelWindow(
                prefix=str(prefix), default=int(row["default"]), maximum=int(row["maximum"])
            )
            for prefix, row in rows.items()
        )
    except (AttributeError, TypeError, ValueError, KeyError) as error:
        raise ConfigError(f"{path.name} has no rows of default and maximum: {error}.") from None
    for one in found:
        if not 0 < one.default <= one.maximum:
            raise ConfigError(f"{path.name}: {one.prefix} needs 0 < default <= maximum.")
    return found


_TOOLS = TypeAdapter(dict[str, ToolRow])
_LATEST = TypeAdapter(dict[str, LatestTable])


def load_tools(path: Path) -> dict[str, ToolRow]:
    """The table of tools by name. ConfigError names what is wrong in the file."""
    found = _table(path, _TOOLS)
    if ANY_OTHER not in found:
        raise ConfigError(f"{path.name} has no row {ANY_OTHER!r} for every other tool; add it.")
    return found


def load_ontology(path: Path) -> Ontology:
    """The registry of types and relations. ConfigError names what is wrong in the file."""
    return _checked(path, TypeAdapter(Ontology))


def load_tables(folder: Path) -> Tables:
    """The tables by which texts are read. ConfigError names what is wrong in which file."""
    return Tables(
        phrases=_checked(folder / "phrases.yaml", TypeAdapter(Phrases)),
        roles=_checked(folder / "roles.yaml", TypeAdapter(dict[str, RoleRow])),
        emotion_rows=_checked(folder / "emotions.yaml", TypeAdapter(dict[str, EmotionRow])),
        valued=_checked(folder / "values.yaml", TypeAdapter(Valued)),
        times=_checked(folder / "times.yaml", TypeAdapter(Times)),
    )


def load_derived_words(path: Path) -> DerivedWords:
    """How what is derived is worded. ConfigError names what is wrong in the file."""
    return _checked(path, TypeAdapter(DerivedWords))


def load_latest(path: Path) -> LatestWords:
    """The words that ask how a thing stands now. ConfigError names what is wrong in the file."""
    return latest_words([*_table(path, _LATEST).values()])


def _table(path: Path, shape: TypeAdapter[dict[str, T]]) -> dict[str, T]:
    return _checked(path, shape)


def _checked(path: Path, shape: TypeAdapter[T]) -> T:
    try:
        return shape.validate_python(_read(path) if path.is_file() else None)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        raise ConfigError(f"{path.name}: {where} is wrong: {first['msg']}.") from None


def load_presets(folder: Path) -> dict[str, Template]:
    """All `*.yaml` in `folder` by id. ConfigError names the file that cannot be used."""
    presets = {path.stem: _preset(path) for path in sorted(folder.glob("*.yaml"))}
    if DEFAULT_TEMPLATE not in presets:
        raise ConfigError(f"No personality {folder.name}/{DEFAULT_TEMPLATE}.yaml; add it.")
    return presets


def _preset(path: Path) -> Template:
    try:
        content = path.read_text(encoding="utf-8")
        check(content)
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


# Reads the folders of recipes and of calibrations (YAML): the file name is the name.


def load_recipes(folder: Path) -> dict[str, Recipe]:
    """All `*.yaml` in `folder` by name. ConfigError names the file that cannot be used."""
    recipes = {}
    for path in sorted(folder.glob("*.yaml")):
        recipes[path.stem] = parse_recipe(path.stem, _tree(path, "Recipe"))
    if not recipes:
        raise ConfigError(f"No recipe in {folder.name}; add configs/recipes/default.yaml.")
    return recipes


def load_calibration(folder: Path, model: str) -> Calibration | None:
    """That of an embedder; None when nobody made one. ConfigError: the file cannot be used."""
    path = folder / file_name(model)
    if not path.is_file():
        return None
    return parse_calibration(path.stem, _tree(path, "Calibration"))


def load_knowledge(folder: Path, model: str, encoder: str = "") -> KnowledgeRule | None:
    """When an embedder knows nothing, alone and with an encoder; None when nobody learned it.

    ConfigError: the weights or the table of forms cannot be used.
    """
    alone = _knowledge(folder, model, SIGNALS)
    if alone is None:
        return None
    both = (ENCODED_SIGNALS, CROSSED_SIGNALS)
    encoded = _knowledge(folder, f"{model} {encoder}", *both) if encoder else None
    return KnowledgeRule(alone, load_forms(folder), encoded)


def _knowledge(folder: Path, model: str, *signals: Sequence[str]) -> KnowledgeModel | None:
    path = folder / file_name(model)
    if not path.is_file():
        return None
    return parse_knowledge(path.stem, _tree(path, "Knowledge"), *signals)


def load_forms(folder: Path) -> Forms:
    """The table of forms. ConfigError: it cannot be used."""
    return parsed(Forms, "Forms", _tree(folder / "forms.yaml", "Forms"))


def _tree(path: Path, what: str) -> dict[str, Any]:
    try:
        tree = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except OSError as error:
        raise ConfigError(
            f"{what} {path.name} cannot be read ({error.strerror}): check the rights of the file."
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{what} {path.name} is not valid UTF-8 YAML: {error}") from None
    if not isinstance(tree, dict):
        raise ConfigError(f"{what} {path.name} must hold a mapping.")
    return tree


_SIGNALS = TypeAdapter(dict[str, SignalTable])


def load_signals(path: Path) -> SignalWords:
    """The words by which importance is told. ConfigError names what is wrong in the file."""
    return SignalWords([*_table(path, _SIGNALS).values()])


def load_importance(path: Path) -> ImportanceParams:
    """The weights of the signals. ConfigError names what is wrong in the file."""
    try:
        return ImportanceParams.model_validate(_read(path) if path.is_file() else None)
    except ValidationError as error:
        raise ConfigError(f"{path.name} is wrong: {error.errors()[0]['msg']}.") from None
