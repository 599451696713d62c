"""Clients made from the API document by the usual generators store, search and judge.

The generators are fetched once per test session, in exact versions: npm is that of the machine or
of the `dev` extra, and pip that of a fresh environment.
"""

import json
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from jobs.build.console import node_command
from tests.running import RunningService
from tests.shell import printed

pytestmark = [pytest.mark.ray, pytest.mark.engine]

CALLS = Path(__file__).parent / "generated"
NPM_PACKAGES = ("openapi-typescript@7.13.0", "openapi-fetch@0.17.0", "typescript@5.9.3")
PYTHON_PACKAGE = "openapi-python-client==0.29.1"
FETCH_LIMIT_S = 240
STRICT = (
    *("--strict", "--target", "es2022", "--module", "commonjs", "--moduleResolution", "node10"),
    *("--lib", "es2022,dom", "--skipLibCheck"),
)


def run(command: Sequence[str | Path], folder: Path, **environment: str) -> str:
    """What the command printed; its whole output when it fails."""
    return printed(command, folder, os.environ | environment, FETCH_LIMIT_S)


@pytest.fixture(scope="module")
def document(service: RunningService, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("document") / "openapi.json"
    with service.client("generated") as http:
        target.write_bytes(http.get("/openapi.json").content)
    return target


@pytest.fixture(scope="session")
def node_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("node")
    run([*node_command("npm"), "install", "--no-audit", "--no-fund", *NPM_PACKAGES], folder)
    return folder


@pytest.fixture(scope="session")
def python_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With an environment of its own: the generator wants an older typer than we do."""
    folder = tmp_path_factory.mktemp("python")
    run([sys.executable, "-m", "venv", "tools"], folder)
    run(["tools/bin/python", "-m", "pip", "install", "-q", PYTHON_PACKAGE], folder)
    return folder


def judged(seen: dict[str, Any]) -> None:
    """What was stored was found first, and the outcome moved it."""
    assert seen["memory_id"]
    assert seen["first"] == seen["memory_id"]
    assert seen["updated"] == [seen["memory_id"]]
    assert seen["skipped"] == []


def test_a_typescript_client(service: RunningService, document: Path, node_folder: Path) -> None:
    programs = node_folder / "node_modules"
    generate = programs / "openapi-typescript" / "bin" / "cli.js"
    run([*node_command("node"), generate, document, "-o", "api.d.ts"], node_folder)
    shutil.copy(CALLS / "calls.ts", node_folder)
    run([*node_command("node"), programs / "typescript/bin/tsc", *STRICT, "calls.ts"], node_folder)
    judged(json.loads(run([*node_command("node"), "calls.js", service.url], node_folder)))


def test_a_python_client(service: RunningService, document: Path, python_folder: Path) -> None:
    (python_folder / "config.yaml").write_text("post_hooks: []\n")
    said = run(
        [
            *("tools/bin/openapi-python-client", "generate", "--path", document),
            *("--output-path", "generated_client", "--meta", "none", "--overwrite"),
            *("--config", "config.yaml", "--fail-on-warning"),
        ],
        python_folder,
    )
    assert "Warning" not in said, said
    shutil.copy(CALLS / "calls.py", python_folder)
    judged(json.loads(run(["tools/bin/python", "calls.py", service.url], python_folder)))
