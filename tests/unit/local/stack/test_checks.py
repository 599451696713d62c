"""`rayapp doctor`: what blocks, what is noted, and the fix it names."""

import json
import socket
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from rayapp.core.settings.load import load_settings
from rayapp.local.stack import checks, given_servers
from rayapp.local.stack.checks import run_checks
from rayapp.local.stack.paths import StackPaths
from rayapp.local.stack.processes import Child
from rayapp.local.stack.programs import find_valkey, valkey_command
from rayapp.local.stack.readiness import Check
from rayapp.serve.haproxy_launch import listens
from tests.unit.fake_service import FakeService, serving

NOBODY = "127.0.0.1:1"
CHECKS = "rayapp.local.stack.checks"


def by_name(tmp_path: Path, **overrides: Any) -> dict[str, Check]:
    overrides = {"data": {"dir": tmp_path / "data"}, "http": {"port": 0}} | overrides
    settings = load_settings(env={}, overrides=overrides)
    return {check.name: check for check in run_checks(settings, tmp_path / "models")}


def model(tmp_path: Path, name: str, dims: int) -> None:
    folder = tmp_path / "models" / name
    folder.mkdir(parents=True)
    (folder / "metadata.json").write_text(json.dumps({"dims": dims}))


def test_everything_that_blocks_names_its_fix(tmp_path: Path) -> None:
    for check in by_name(tmp_path).values():
        assert check.verdict != "blocks" or check.fix, check


def test_model_folder_and_dims(tmp_path: Path) -> None:
    assert by_name(tmp_path)["embedding"].verdict == "blocks"
    model(tmp_path, "tiny", 256)
    good = by_name(tmp_path, embedding={"model": "tiny"})["embedding"]
    assert good.verdict == "ok"
    assert "256 dims" in good.found
    wrong = by_name(tmp_path, embedding={"model": "tiny", "dims": 768})["embedding"]
    assert wrong.verdict == "blocks"
    assert "RAYAPP_EMBEDDING__DIMS=256" in wrong.fix


def test_the_encoder_is_named_or_said_to_be_off(tmp_path: Path) -> None:
    assert by_name(tmp_path)["encoder"].verdict == "ok"
    off = by_name(tmp_path, embedding={"encoder": {"enabled": False}})["encoder"]
    assert (off.verdict, off.found.split(":")[0]) == ("note", "off")
    other = by_name(tmp_path, embedding={"encoder": {"model": "nope"}})["encoder"]
    assert other.verdict == "blocks"
    assert "embedding.encoder.model" in other.fix


def test_a_busy_port_blocks(tmp_path: Path) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        check = by_name(tmp_path, http={"port": port})["http"]
    assert check.verdict == "blocks"
    assert str(port) in check.found
    assert by_name(tmp_path, http={"port": port})["http"].verdict == "ok"


def test_a_qdrant_server_that_does_not_answer_blocks(tmp_path: Path) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        check = by_name(tmp_path, qdrant={"url": url})["qdrant"]
    assert check.verdict == "blocks"
    assert url in check.found


def test_given_servers_are_not_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rayapp.local.stack.programs.find_mongod", lambda: None)
    monkeypatch.setattr("rayapp.local.stack.programs.find_valkey", lambda: None)
    without = by_name(tmp_path)
    assert without["mongodb"].verdict == "blocks"
    assert "MONGODB_URI" in without["mongodb"].fix
    assert without["cache"].verdict == "note"
    given = by_name(
        tmp_path,
        mongo={"uri": f"mongodb://me:secret@{NOBODY}/"},
        redis={"url": f"redis://:secret@{NOBODY}"},
    )
    for name, variable in (("mongodb", "MONGODB_URI"), ("cache", "REDIS_URL")):
        assert given[name].verdict == "blocks"
        assert "does not answer" in given[name].found
        assert NOBODY in given[name].found
        assert "secret" not in given[name].found
        assert variable in given[name].fix


def test_a_given_cluster_is_connected_to(tmp_path: Path) -> None:
    away = by_name(tmp_path, ray={"address": NOBODY})["ray"]
    assert away.verdict == "blocks"
    assert "RAY_ADDRESS" in away.fix
    with socket.create_server(("127.0.0.1", 0)) as head:
        address = f"127.0.0.1:{head.getsockname()[1]}"
        assert by_name(tmp_path, ray={"address": address})["ray"].verdict == "ok"
        assert given_servers.ray_cluster(f"ray://{address}").verdict == "ok"


def test_a_given_cache_that_answers_is_ok(tmp_path: Path) -> None:
    binary = find_valkey()
    assert binary is not None
    path = tmp_path / "c.sock"
    child = Child(
        name="valkey",
        command=valkey_command(binary, path),
        env={},
        stack_id="checks-test",
        log=tmp_path / "valkey.log",
        ready=lambda: listens(path),
        start_timeout_s=10.0,
        stop_wait_s=5.0,
    )
    child.start()
    try:
        for _ in child.wait_ready():
            time.sleep(0.02)
        assert given_servers.cache(f"unix://{path}").verdict == "ok"
    finally:
        child.stop()
    assert given_servers.cache(f"unix://{path}").verdict == "blocks"


def test_another_http_server_is_no_qdrant() -> None:
    with serving(FakeService()) as service:
        check = given_servers.qdrant(service.url, "")
    assert (check.verdict, "is no Qdrant server" in check.found) == ("blocks", True)


@pytest.mark.parametrize(
    ("host", "said"),
    [("203.0.113.7", "no address of this machine"), ("no-such-host.invalid", "No host")],
)
def test_an_address_that_cannot_be_bound_is_not_called_busy(
    tmp_path: Path, host: str, said: str
) -> None:
    check = by_name(tmp_path, http={"host": host, "port": 8123})["http"]
    assert check.verdict == "blocks"
    assert said in check.fix


@pytest.mark.process
def test_a_port_held_by_a_left_server_of_this_stack_asks_for_down(tmp_path: Path) -> None:
    code = (
        "import socket, time\n"
        "s = socket.create_server(('127.0.0.1', 0))\n"
        "print(s.getsockname()[1], flush=True)\n"
        "time.sleep(60)"
    )
    child = Child(
        name="left",
        command=[sys.executable, "-c", code],
        env={},
        stack_id=StackPaths.of(tmp_path / "data").stack_id,
        log=tmp_path / "left.log",
        ready=lambda: bool((tmp_path / "left.log").read_text().strip()),
        start_timeout_s=30.0,
        stop_wait_s=5.0,
    )
    child.start()
    try:
        for _ in child.wait_ready():
            time.sleep(0.02)
        port = int((tmp_path / "left.log").read_text())
        check = by_name(tmp_path, http={"port": port})["http"]
    finally:
        child.stop()
    assert check.verdict == "blocks"
    assert check.fix.startswith("rayapp down")


def test_disk_and_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{CHECKS}.needed_mb", lambda *_: 1 << 40)
    monkeypatch.setattr(f"{CHECKS}.MIN_MEMORY_MB", 1 << 40)
    found = by_name(tmp_path)
    assert found["disk"].verdict == "blocks"
    assert found["memory"].verdict == "blocks"


@pytest.mark.parametrize("version", [None, "2.59.1", "3.0.0"])
def test_another_ray_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str | None
) -> None:
    monkeypatch.setattr(f"{CHECKS}.programs.version_of_wheel", lambda _: version)
    check = by_name(tmp_path)["ray"]
    assert check.verdict == "blocks"
    assert "2.60" in check.fix


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("mongodb://me:p/w#x?y@db:27017/?w=1", "mongodb://db:27017/"),
        ("mongodb://me:a@b@db/x", "mongodb://db/x"),
        ("redis://:s3cret@[cache:1", "an address that cannot be read"),
        ("http://index:6333", "http://index:6333"),
    ],
)
def test_no_password_is_shown(url: str, said: str) -> None:
    assert given_servers.shown(url) == said


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ({"compat": {"first_client": True}}, ["http.allowed_hosts", "models.base_url"]),
        (
            {"http": {"allowed_hosts": ["chat.example.org"]}, "compat": {"tier_documents": False}},
            ["compat.first_client", "compat.tier_documents", "models.base_url"],
        ),
        (
            {
                "compat": {"first_client": True},
                "http": {"allowed_hosts": ["chat.example.org"]},
                "models": {"base_url": "http://127.0.0.1:8002/v1", "model": "dictalm"},
            },
            [],
        ),
    ],
)
def test_what_a_chat_product_lacks_is_named(
    tmp_path: Path, given: dict[str, Any], missing: list[str]
) -> None:
    settings = load_settings("local", env={}, overrides={"data": {"dir": tmp_path}, **given})
    check = next(one for one in run_checks(settings, tmp_path) if one.name == "chat product")
    assert check.verdict == ("note" if missing else "ok")
    named = [name for name in checks.CHAT_PRODUCT if name in check.fix]
    assert named == [name for name in checks.CHAT_PRODUCT if name in missing]


def test_a_store_without_a_chat_product_lacks_nothing(tmp_path: Path) -> None:
    settings = load_settings("local", env={}, overrides={"data": {"dir": tmp_path}})
    check = next(one for one in run_checks(settings, tmp_path) if one.name == "chat product")
    assert (check.verdict, check.fix) == ("ok", "")


def test_the_readme_has_the_settings_of_a_chat_product() -> None:
    readme = (Path(__file__).parents[4] / "README.md").read_text(encoding="utf-8")
    section = readme.split("## Behind your chat product")[1].split("\n## ")[0]
    assert [name for name in checks.CHAT_PRODUCT if f"`{name}`" not in section] == []
