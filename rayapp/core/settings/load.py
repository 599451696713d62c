"""How settings are read: the profile's YAML, then the environment, then overrides; validated."""

import difflib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from rayapp.core.errors import ConfigError
from rayapp.core.settings.access import SettingsSection
from rayapp.core.settings.model import Settings

ENV_PREFIX = "RAYAPP_"
# Read by the test suite, the profile switch and the local stack, not settings themselves.
ENV_EXTRA = frozenset({"RAYAPP_REALDATA", "RAYAPP_PROFILE", "RAYAPP_CONFIG", "RAYAPP_STACK"})
PLAIN_ENV = {
    "MONGODB_URI": ("mongo", "uri"),
    "QDRANT_URL": ("qdrant", "url"),
    "REDIS_URL": ("redis", "url"),
    "RAY_ADDRESS": ("ray", "address"),
    "MEMORY_LLM_BASE_URL": ("models", "base_url"),
    "MEMORY_LLM_MODEL": ("models", "model"),
    "MEMORY_LLM_API_KEY": ("models", "api_key"),
}
_PACKAGE = Path(__file__).resolve().parents[2]
# In a checkout beside the package, in a wheel inside it.
CONFIG_DIR = next(
    (p for p in (_PACKAGE.parent / "configs", _PACKAGE / "configs") if p.is_dir()),
    _PACKAGE / "configs",
)


def load_settings(
    profile: str | None = None,
    *,
    config: Path | None = None,
    env: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Settings:
    """Settings from the profile's YAML, the environment and `overrides` (nested), validated.

    Raises ConfigError: unknown key (the nearest known one is named), bad value, dangerous pair.
    """
    env = os.environ if env is None else env
    name = profile or env.get("RAYAPP_PROFILE") or "local"
    tree = _read_yaml(_config_file(config, env, name))
    tree.setdefault("profile", name)
    _merge(tree, _from_env(env))
    _merge(tree, overrides or {})
    try:
        settings = Settings.model_validate(tree)
    except ValidationError as error:
        raise ConfigError(_sentence(error)) from None
    _check_recipe(settings.search.recipe)
    return settings


def _check_recipe(name: str) -> None:
    """A recipe that is not there would be told to whoever searches and named none."""
    known = sorted(path.stem for path in (CONFIG_DIR / "recipes").glob("*.yaml"))
    if name not in known and name.partition("-without-")[0] not in known:
        raise ConfigError(f"Setting search.recipe: no recipe {name!r}; use {', '.join(known)}.")


def _config_file(config: Path | None, env: Mapping[str, str], name: str) -> Path:
    """The named file, else the one of RAYAPP_CONFIG, else the profile's."""
    named = config or (Path(env["RAYAPP_CONFIG"]) if env.get("RAYAPP_CONFIG") else None)
    if named is not None:
        if not named.is_file():
            raise ConfigError(f"No settings file {named}: correct or unset RAYAPP_CONFIG.")
        return named
    path = CONFIG_DIR / f"{name}.yaml"
    if not path.exists():
        raise ConfigError(f"No profile {name!r}: {path.name} is missing; use local, gpu or prod.")
    return path


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        tree = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read ({error}): correct or replace it.") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{path.name} is not valid YAML: {error}") from None
    if not isinstance(tree, dict):
        raise ConfigError(f"{path.name} must hold a mapping of settings.")
    return tree


def _from_env(env: Mapping[str, str]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for plain, path in PLAIN_ENV.items():
        if env.get(plain):
            _put(tree, path, env[plain])
    for key, value in env.items():
        if key.startswith(ENV_PREFIX) and key not in ENV_EXTRA:
            _put(tree, _path_of(key), _parse(value))
    return tree


def _path_of(variable: str) -> tuple[str, ...]:
    """`RAYAPP_HTTP__PORT` -> ("http", "port")."""
    path = tuple(variable.removeprefix(ENV_PREFIX).lower().split("__"))
    if not all(path) or any(part.startswith("_") for part in path):
        raise ConfigError(
            f"{variable} names no setting: write RAYAPP_<GROUP>__<NAME>, "
            "for example RAYAPP_HTTP__PORT."
        )
    return path


def _parse(value: str) -> Any:
    """Lists come as YAML; everything else stays text for pydantic to read."""
    if not value.startswith(("[", "{")):
        return value
    try:
        return yaml.safe_load(value)
    except yaml.YAMLError:
        raise ConfigError(f"{value!r} is not a YAML list: write it like ['a', 'b'].") from None


def _put(tree: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for depth, part in enumerate(path[:-1], start=1):
        tree = tree.setdefault(part, {})
        if not isinstance(tree, dict):
            raise ConfigError(f"Setting {'.'.join(path[:depth])} is a group: set one of its names.")
    tree[path[-1]] = value


def _merge(into: dict[str, Any], other: Mapping[str, Any]) -> None:
    for key, value in other.items():
        if isinstance(value, Mapping) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = dict(value) if isinstance(value, Mapping) else value


def _sentence(error: ValidationError) -> str:
    first = error.errors()[0]
    path = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        near = difflib.get_close_matches(path, list(setting_names()), n=1, cutoff=0.0)
        return f"Unknown setting {path!r}; did you mean {near[0]!r}?"
    if first["type"] == "model_type":
        name = next(name for name in setting_names() if name.startswith(f"{path}."))
        return f"Setting {path} is a group: set one of its names, for example {name}."
    message = first["msg"].removeprefix("Value error, ")
    return f"Setting {path}: {message}." if path else f"{message}."


def setting_names(model: type[BaseModel] = Settings, prefix: str = "") -> Iterable[str]:
    """Dotted names of all leaf settings."""
    for name, info in model.model_fields.items():
        kind = info.annotation
        if isinstance(kind, type) and issubclass(kind, SettingsSection):
            yield from setting_names(kind, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"
