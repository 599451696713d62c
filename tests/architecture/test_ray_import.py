"""Ray reads its environment when it is imported, so no command may import it before it is set."""

import pkgutil
import subprocess
import sys

import pytest

import jobs

# Imported by the frame alone, once the environment is set, and by the workers inside Ray.
INSIDE_RAY = {"jobs.workers"}
# Prints the first module that brings Ray with it.
PROBE = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
    if "ray" in sys.modules:
        sys.exit(f"{name} imports Ray")
"""


def modules() -> list[str]:
    found = pkgutil.walk_packages(jobs.__path__, prefix="jobs.")
    return [module.name for module in found if module.name not in INSIDE_RAY]


def probed(*names: str) -> str:
    """What the probe complains of in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *names], capture_output=True, text=True, check=False
    )
    return done.stderr


@pytest.mark.process
def test_no_command_imports_ray_before_the_stack_s_environment_is_set() -> None:
    names = modules()
    assert {"jobs.consistency_sweep", "jobs.frame", "jobs.reindex"} <= set(names)
    assert probed("rayapp.local.cli.app", *names) == ""


@pytest.mark.process
def test_a_module_that_imports_ray_would_be_found() -> None:
    (name,) = INSIDE_RAY
    assert probed(name).strip() == f"{name} imports Ray"
