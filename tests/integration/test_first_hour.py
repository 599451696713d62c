"""What a new user types in the first hour, as processes on the running stack."""

import json
import re
from pathlib import Path

import httpx
import pytest

from rayapp.local.demo.material import load_material
from tests.running import RunningService
from tests.shell import typed

pytestmark = [pytest.mark.ray, pytest.mark.engine]


def test_the_start_said_what_it_waited_for(service: RunningService) -> None:
    """In the words of the driver and of Ray Serve, in the order in which they came."""
    waits = service.waits
    assert "application: starting Ray Serve" in waits
    starting = [line for line in waits if "deployments run, starting indexer, search" in line]
    assert starting, waits
    assert waits.index("application: starting Ray Serve") < waits.index(starting[0])


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("ray status", "Resources"),
        ("serve status", "rayapp"),
        ("ray job list", "deploy"),
        ("ray job submit -- python -c 'print(6 * 7)'", "42"),
    ],
)
def test_rays_own_commands_after_env(
    service: RunningService, tmp_path: Path, command: str, said: str
) -> None:
    begin = f'eval "$(rayapp env --data-dir {service.folder})"'
    done = typed(f"{begin} && {command}", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert said in done.stdout + done.stderr


def test_the_dashboard_takes_the_token_that_status_names(
    service: RunningService, tmp_path: Path
) -> None:
    done = typed(f"rayapp status --data-dir {service.folder}", tmp_path)
    line = next(line for line in done.stdout.splitlines() if line.startswith("dashboard: "))
    url, command = line.split()[1], line.split("`")[1]
    token = typed(command, tmp_path).stdout
    with httpx.Client(base_url=url, timeout=20) as browser:
        assert browser.get("/api/cluster_status").status_code == 401
        login = browser.post("/api/authenticate", headers={"Authorization": f"Bearer {token}"})
        assert login.status_code == 200
        assert browser.get("/api/cluster_status").status_code == 200


def test_the_console_is_served_by_the_stack(service: RunningService) -> None:
    with service.client("console") as browser:
        page = browser.get("/console/memories")
        assert "default-src 'none'" in page.headers["content-security-policy"]
        (script,) = re.findall(r'src="(/console/[^"]+\.js)"', page.text)
        loaded = browser.get(script)
        assert loaded.headers["content-encoding"] == "gzip"
        again = browser.get(script, headers={"If-None-Match": loaded.headers["etag"]})
        assert again.status_code == 304
        assert browser.get("/api/auth/console").json()["user_id"] == "console"


def test_a_key_in_local_mode_is_not_accepted_silently(
    service: RunningService, tmp_path: Path
) -> None:
    (tmp_path / "my.key").write_text("rk_of_production\n")
    options = f"--user first-key --data-dir {service.folder} --api-key-file my.key"
    done = typed(f"rayapp search tea {options}", tmp_path)
    assert done.returncode == 0
    assert "local mode checks no key: yours was ignored, user first-key served" in done.stderr


def test_add_search_and_recent(service: RunningService, tmp_path: Path) -> None:
    options = f"--user first-hour --data-dir {service.folder}"
    empty = typed(f"rayapp recent {options}", tmp_path)
    assert (empty.returncode, empty.stderr) == (0, "")
    assert "`rayapp add TEXT`" in empty.stdout

    for text in ("הרכב של דנה במוסך בירושלים", "Dana is [allergic] to peanuts"):
        added = typed(f"rayapp add '{text}' {options}", tmp_path)
        assert (added.returncode, added.stderr) == (0, "")
        assert added.stdout.startswith("Stored in history for 30 days: ")
    again = typed(f"rayapp add 'Dana is [allergic] to peanuts' {options}", tmp_path)
    assert again.stdout.startswith("It was there already: ")

    found = typed(f"rayapp search 'איפה הרכב?' --limit 1 {options}", tmp_path)
    assert (found.returncode, found.stderr) == (0, "")
    assert "1. הרכב של דנה במוסך בירושלים" in found.stdout
    assert "history" in found.stdout
    assert "1 memory in " in found.stdout

    newest = typed(f"rayapp recent --limit 1 {options}", tmp_path)
    assert "Dana is [allergic] to peanuts" in newest.stdout
    assert "הרכב" not in newest.stdout


def test_answers_as_json(service: RunningService, tmp_path: Path) -> None:
    options = f"--user first-json --data-dir {service.folder} --json"
    stored = json.loads(typed(f"rayapp add 'Noa drinks tea' {options}", tmp_path).stdout)
    found = json.loads(typed(f"rayapp search tea {options}", tmp_path).stdout)
    newest = json.loads(typed(f"rayapp recent {options}", tmp_path).stdout)
    ids = [stored["memory_id"], found["results"][0]["memory_id"], newest[0]["memory_id"]]
    assert len(set(ids)) == 1


@pytest.mark.parametrize("command", ["add x", "search x", "recent"])
def test_without_a_stack_one_sentence_says_what_to_do(command: str, tmp_path: Path) -> None:
    done = typed(f"rayapp {command} --data-dir here", tmp_path)
    assert done.returncode == 2
    assert done.stderr.strip() == "No stack runs for here: start it with `rayapp up`."


def test_a_tier_that_is_none_is_named(service: RunningService, tmp_path: Path) -> None:
    done = typed(f"rayapp add x --tier attic --data-dir {service.folder}", tmp_path)
    assert done.returncode == 1
    assert "tier" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_the_demo_ends_with_three_commands_that_run(
    service: RunningService, tmp_path: Path
) -> None:
    done = typed(f"rayapp demo --data-dir {service.folder}", tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"of {len(load_material().questions)} questions have their evidence" in done.stdout
    assert "= Where does Noa live today?" in done.stdout
    commands = [line.strip() for line in done.stdout.splitlines()[-3:]]
    outputs = []
    for command in commands:
        assert command.startswith("rayapp ")
        again = typed(command, tmp_path)
        assert (again.returncode, again.stderr) == (0, ""), command
        outputs.append(again.stdout)
    searched, _, newest = outputs
    assert "Sir Prickles" in searched
    assert "Dana moved to Haifa in May" in newest
