"""The README as a user types it: its shell lines in order, in one bash, at the running service."""

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.running import RunningService

pytestmark = [pytest.mark.ray, pytest.mark.engine]
ROOT = Path(__file__).resolve().parents[2]
SHOWN_URL = "http://127.0.0.1:8000"
TURNED_OFF, TRAY = "turn it off and on", "open the rear tray"
LIMIT_S = 120.0
HIT = re.compile(r"^(\d) When the printer jams, (.+) (\d+)% \((\d+)% to (\d+)%\)$")


def shell_of(*sections: str) -> str:
    """The commands of these sections; the running service is there already."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = []
    for name in sections:
        section = text.split(f"\n## {name}\n")[1].split("\n## ")[0]
        blocks += re.findall(r"^```\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    return "\n".join(block for block in blocks if "rayapp up" not in block)


@dataclass(frozen=True)
class Shown:
    """A line of `ask`: what was shown at which place, with its estimate in percent."""

    position: int
    advice: str
    value: int
    low: int
    high: int


def python_of(section: str) -> str:
    """The first Python program of a section."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    code = re.search(r"```python\n(.*?)```", text.split(f"\n## {section}\n")[1], re.DOTALL)
    assert code is not None
    return code[1]


@pytest.fixture(scope="module")
def printed(service: RunningService) -> list[str]:
    """The lines that the two sections print, one after the other."""
    script = shell_of("Five minutes", "It learns").replace(SHOWN_URL, service.url)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def asked(printed: list[str]) -> list[list[Shown]]:
    """The answers of the three `ask` lines."""
    found = [found for line in printed if (found := HIT.match(line))]
    hits = [Shown(int(m[1]), m[2], int(m[3]), int(m[4]), int(m[5])) for m in found]
    assert [hit.position for hit in hits] == [1, 2] * 3, printed
    return [hits[at : at + 2] for at in (0, 2, 4)]


def test_the_program_finds_what_the_shell_lines_stored(
    service: RunningService, printed: list[str]
) -> None:
    program = python_of("Five minutes").replace(SHOWN_URL, service.url)
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Dana is allergic to peanuts" in done.stdout
    assert "Dana moved to Haifa in May" in done.stdout


def test_a_rank_moves_in_the_section_it_learns(asked: list[list[Shown]]) -> None:
    first, second, third = asked
    assert {hit.advice for hit in first} == {TURNED_OFF, TRAY}
    assert second[0].advice == third[0].advice == first[1].advice
    assert second[1].advice == first[0].advice


def test_the_estimate_falls_with_failed_and_rises_with_worked(asked: list[list[Shown]]) -> None:
    first, second, third = asked
    assert {hit.value for hit in first} == {50}
    assert (second[0].value, second[1].value) == (50, 40)
    assert (third[0].value, third[0].low, third[0].high) == (60, 21, 100)


def test_the_insights_name_what_worked_and_what_failed(
    printed: list[str], asked: list[list[Shown]]
) -> None:
    failed, worked = asked[0][0].advice, asked[0][1].advice
    assert any(line.startswith(f"worked: When the printer jams, {worked}: ") for line in printed)
    assert any(line.startswith(f"failed: When the printer jams, {failed}: ") for line in printed)


def test_the_takeaway_is_kept_and_scores_what_was_shown(printed: list[str]) -> None:
    assert any("Takeaway kept, memories scored." in line for line in printed)
