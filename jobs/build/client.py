"""The client of the HTTP API as a distribution of its own, `rayapp-client`.

    python -m jobs.build.client --out dist

Whoever only calls the API installs httpx, pydantic and orjson, not the service. The wheel holds
`rayapp.client` and the modules that it needs, found by their imports, under the same names: install
it or `rayapp`, not both. It ends with an error when one of them would need more.
"""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

from jobs.ending import command_parser

ROOT = Path(__file__).resolve().parents[2]
PACKAGE, START = "rayapp", "rayapp.client"
REQUIRED = ("httpx", "orjson", "pydantic")
PROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "rayapp-client"
version = "{version}"
description = "Client of the rayapp memory service, async and sync, fully typed."
readme = "README.md"
license = "Apache-2.0"
requires-python = ">=3.11"
dependencies = {dependencies}

[tool.hatch.build.targets.wheel]
packages = ["rayapp"]
"""
README = """\
# rayapp-client

The typed client of the rayapp memory service.

    from rayapp.client import Memory, SyncMemoryClient

    with SyncMemoryClient("http://127.0.0.1:8000", user_id="dana") as client:
        client.store(Memory(text="Dana parks on the second floor", tier="history"))
        print(client.search("where does Dana park?").results[0].content)
"""


def imports_of(tree: ast.AST) -> Iterator[str]:
    """Modules that are imported when the code runs: not those that only types need."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            continue
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{one.name}" for one in node.names)
        yield from imports_of(node)


def file_of(module: str) -> Path | None:
    """The file of a module of ours; None for what is none."""
    path = ROOT.joinpath(*module.split("."))
    found = (path.with_suffix(".py"), path / "__init__.py")
    return next((one for one in found if one.is_file()), None)


def needed() -> tuple[set[Path], set[str]]:
    """The files behind `rayapp.client`, and the packages of others that they import."""
    todo, files, others = [START], set[Path](), set[str]()
    while todo:
        module = todo.pop()
        top = module.split(".")[0]
        if top != PACKAGE:
            others.add(top)
            continue
        path = file_of(module)
        if path is None or path in files:
            continue
        files.add(path)
        todo.append(module.rpartition(".")[0] or module)
        todo.extend(imports_of(ast.parse(path.read_text(encoding="utf-8"))))
    return files, others - sys.stdlib_module_names


def write_project(folder: Path) -> None:
    """Raises SystemExit when a module needs a package that a caller should not install."""
    files, others = needed()
    if strange := sorted(others - set(REQUIRED)):
        sys.exit(f"The client would need {', '.join(strange)}: import it where a server runs.")
    for path in [*files, ROOT / PACKAGE / "py.typed"]:
        target = folder / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    kept = [one for one in project["dependencies"] if one.partition(">")[0] in REQUIRED]
    text = PROJECT.format(version=project["version"], dependencies=kept)
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")
    (folder / "README.md").write_text(README, encoding="utf-8")


def main(argv: Sequence[str] | None = None) -> int:
    parser = command_parser("jobs.build.client", __doc__, out=False)
    parser.add_argument("--out", type=Path, default=Path("dist"), help="folder of the wheel")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="rayapp-client-") as folder:
        write_project(Path(folder))
        pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
        done = subprocess.run([*pip, "--wheel-dir", str(options.out), folder], check=False)
    if done.returncode:
        sys.exit(f"pip made no wheel in {options.out}: it says above why.")
    print(f"The wheel is in {options.out}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
