"""`python -m tests.serve`: stores, finds and scores over HTTP without any server, and ends."""

import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 60


def body_of(line: str) -> str:
    """What the printed curl line sends."""
    words = shlex.split(line)
    return words[words.index("-d") + 1]


@pytest.mark.process
def test_what_it_prints_is_what_works() -> None:
    command = [sys.executable, "-m", "tests.serve", "--port", "0"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        said = process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+", said)
        assert found is not None, said
        printed = [process.stdout.readline() for _ in range(4)]
        assert httpx.get(printed[0].split()[-1], timeout=LIMIT_S).status_code == 200
        lines = printed[1:]
        with httpx.Client(base_url=found[0], timeout=LIMIT_S) as api:
            answers = []
            for line in lines:
                path = shlex.split(line)[2].removeprefix(found[0])
                headers = {"Content-Type": "application/json"}
                answers.append(api.post(path, content=body_of(line), headers=headers).json())
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(LIMIT_S)
        process.stdout.close()
    stored, search, scored = answers
    assert search["results"][0]["memory_id"] == stored["memory_id"]
    assert [row["memory_id"] for row in scored["updated"]] == [stored["memory_id"]]
    assert process.returncode == 0


@pytest.mark.process
def test_it_brings_no_ray() -> None:
    code = "import sys, tests.serve; sys.exit('ray' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
