"""`rayapp job`: which modules are jobs."""

from __future__ import annotations

import ast
import pkgutil
from pathlib import Path

import jobs
from rayapp.core.errors import ConfigError


def job_names() -> list[str]:
    """Modules of the package `jobs` that define `main`; none of them is imported."""
    return sorted(
        module.name
        for module in pkgutil.iter_modules(jobs.__path__)
        if not module.ispkg and _has_main(module.name)
    )


def checked_job(name: str) -> str:
    """`name`, if it is a job. Raises ConfigError with the list of jobs."""
    names = job_names()
    if name not in names:
        raise ConfigError(f"No job {name!r}: use one of {', '.join(names)}.")
    return name


def _has_main(name: str) -> bool:
    paths = (Path(folder) / f"{name}.py" for folder in jobs.__path__)
    source = next(path for path in paths if path.is_file())
    tree = ast.parse(source.read_text(encoding="utf-8"))
    return any(isinstance(node, ast.FunctionDef) and node.name == "main" for node in tree.body)
