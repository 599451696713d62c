"""Every command of `jobs` as people start it: a process, from a shell that knows nothing of Ray."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from rayapp.local.cli.app import job_names
from tests.running import RunningService

pytestmark = [pytest.mark.ray, pytest.mark.engine]

# A command imports Ray and joins the cluster, and its workers load a model: a minute on a full
# machine.
LIMIT_S = 300.0
DONE, BAD_ARGUMENTS = 0, 2


@dataclass(frozen=True)
class Command:
    """One call of a module of `jobs`.

    Attributes:
        says: part of a line that it prints.
        attached: it takes the stack's folder itself.
        module: `python -m jobs.NAME` instead of `rayapp job NAME`.
    """

    name: str
    options: tuple[str, ...]
    says: str
    code: int = DONE
    attached: bool = True
    module: bool = False

    def __str__(self) -> str:
        way = "module" if self.module else "rayapp"
        return "-".join([way, self.name, *self.options]).replace("/", "")


NOTHING = "/no-such-folder"
COMMANDS = (
    Command("backup", ("create",), "rows", module=True),
    Command("backup", ("verify",), "is whole"),
    Command("consistency_sweep", ("--full",), "is done", module=True),
    Command("consistency_sweep", ("--sample", "100", "--repair"), "is done"),
    Command("deferred", (), "is done", module=True),
    Command("deferred", ("--user", "dana", "--no-resume"), "is done"),
    Command("promotion", (), "is done", module=True),
    Command("promotion", ("--no-resume",), "is done"),
    Command("reindex", ("--dry-run",), "nothing was written", module=True),
    Command("reindex", ("--switch", "never"), "is done"),
    Command("understand", (), "is done", module=True),
    Command("understand", ("--user", "dana", "--again"), "is done"),
    Command("datagov_ingest", ("--source", NOTHING), NOTHING, BAD_ARGUMENTS, module=True),
    Command("datagov_ingest", ("--source", NOTHING, "--dry-run"), NOTHING, BAD_ARGUMENTS),
    Command(
        "documents_ingest",
        ("--folder", NOTHING, "--user", "dana"),
        NOTHING,
        BAD_ARGUMENTS,
        module=True,
    ),
    Command("documents_ingest", ("--folder", NOTHING, "--user", "dana"), NOTHING, BAD_ARGUMENTS),
    Command("export_parquet", ("--dry-run",), "nothing was written", module=True),
    Command("export_parquet", ("--optional",), "is done"),
    Command("dictionary", (), "acronyms", attached=False, module=True),
    Command("dictionary", (), "acronyms", attached=False),
    Command("embedder_report", (), "MRR", attached=False, module=True),
    Command("embedder_report", (), "MRR", attached=False),
    *(
        Command(name, options, NOTHING, BAD_ARGUMENTS, attached=False, module=module)
        for name, options in (
            ("calibrate", ("--data", NOTHING)),
            ("evaluate", ("--suite", "heq", "--data", NOTHING)),
            ("language_report", ("--file", NOTHING)),
            ("rerank_report", ("--data", NOTHING)),
            ("tune", ("--data", NOTHING)),
        )
        for module in (True, False)
    ),
)


def test_every_command_is_started_both_ways() -> None:
    started = {(command.name, command.module) for command in COMMANDS}
    assert started == {(name, module) for name in job_names() for module in (True, False)}


@pytest.mark.parametrize("command", COMMANDS, ids=str)
def test_a_command_works_from_a_shell_that_knows_nothing_of_ray(
    command: Command, service: RunningService, tmp_path: Path
) -> None:
    rayapp = Path(sys.executable).with_name("rayapp")
    way = [sys.executable, "-m", f"jobs.{command.name}"]
    if not command.module:
        way = [str(rayapp), "job", command.name]
    # `rayapp job` always has a stack, whether the command asks it anything or not.
    attached = command.attached or not command.module
    stack = ("--data-dir", str(service.folder)) if attached else ()
    ran = subprocess.run(
        [*way, *stack, *command.options],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    printed = ran.stdout + ran.stderr
    assert ran.returncode == command.code, printed
    assert command.says in printed
    assert "Traceback" not in printed
