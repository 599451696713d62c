"""The command line without servers: what it prints and how it ends."""

import asyncio
import io
import os
import shlex
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from rayapp.admin.api_keys import ApiKeyService
from rayapp.admin.ports import ApiKey, Scope
from rayapp.core.errors import ConfigError, InvalidInput
from rayapp.core.settings.load import load_settings
from rayapp.local.cli import keys
from rayapp.local.cli.app import app, checked_job, environment_of, job_names, places
from rayapp.local.cli.keys import user_of
from rayapp.local.cli.output import console, table_of
from rayapp.local.stack import stack
from rayapp.local.stack.paths import StackPaths
from rayapp.local.stack.processes import ProcessRef
from rayapp.local.stack.state import StackState, write_state
from tests.support.clock import FakeClock
from tests.support.stores.stores import InMemoryApiKeyStore
from tests.unit.fake_service import FakeService, serving

RUNNER = CliRunner()


def test_version() -> None:
    done = RUNNER.invoke(app, ["--version"])
    assert done.exit_code == 0
    assert done.output.startswith("rayapp 0.")


def test_jobs_are_the_modules_with_a_main() -> None:
    names = job_names()
    assert {"evaluate", "reindex", "deferred"} <= set(names)
    assert not {"waiting", "suites"} & set(names)
    for name in ("waiting", "suites", "nope", "os.path", "../evaluate", ""):
        with pytest.raises(ConfigError, match="deferred, dictionary, documents_ingest, embedder"):
            checked_job(name)


def test_help_without_a_job_lists_them() -> None:
    done = RUNNER.invoke(app, ["job", "--help"])
    assert done.exit_code == 0
    assert "reindex" in done.output


def test_a_job_begins_without_a_stack_and_says_itself_whether_it_needs_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RAYAPP_DATA__DIR", raising=False)
    assert environment_of(None, {}) == {}
    # What names a cluster is not what was meant by a directory.
    of_cluster = {"RAY_ADDRESS": "10.0.0.1:6379", "A": "1"}
    assert environment_of(None, of_cluster) == of_cluster
    in_data = {"RAYAPP_DATA__DIR": str(tmp_path / "data")}
    assert environment_of(Path("data"), of_cluster) == {"A": "1", **in_data}
    (tmp_path / "rayapp.yaml").write_text("data:\n  dir: data\n", encoding="utf-8")
    monkeypatch.setenv("RAYAPP_CONFIG", str(tmp_path / "rayapp.yaml"))
    assert environment_of(None, {}) == in_data
    paths = StackPaths.of("data")
    paths.run.mkdir(parents=True)
    state = StackState(
        stack_id=paths.stack_id,
        supervisor=ProcessRef.of("supervisor", os.getpid()),
        environment={"MONGODB_URI": "mongodb://127.0.0.1:1/"},
    )
    write_state(paths, state)
    assert environment_of(Path("data"), {}) == {
        "MONGODB_URI": "mongodb://127.0.0.1:1/",
        "RAYAPP_DATA__DIR": str(tmp_path / "data"),
    }


def test_status_says_why_it_is_not_ready_and_where_to_look(tmp_path: Path) -> None:
    paths = StackPaths.of(tmp_path / "data[bold]")
    paths.run.mkdir(parents=True)
    paths.token.write_text("t")
    with serving(FakeService()) as service:
        state = StackState(
            stack_id=paths.stack_id,
            phase="ready",
            supervisor=ProcessRef.of("supervisor", os.getpid()),
            http_url=service.url,
            dashboard_url="http://127.0.0.1:20001",
            environment={"RAY_AUTH_MODE": "token"},
        )
        write_state(paths, state)
        done = RUNNER.invoke(app, ["status", "--data-dir", str(paths.data)])
    assert done.exit_code == 1
    assert f"{service.url}: not ready\n  warming" in done.output
    assert "(ready)" not in done.output
    token = f"`cat {shlex.quote(str(paths.token))}` prints it"
    assert f"dashboard: http://127.0.0.1:20001 (it asks for a token: {token})" in done.output
    assert str(paths.ray_session_logs) in done.output
    assert str(paths.kept_ray_logs) in done.output


def test_logs_of_a_joined_cluster_are_not_here(tmp_path: Path) -> None:
    state = StackState(stack_id="x", supervisor=ProcessRef.of("supervisor", os.getpid()))
    lines = places(state, StackPaths.of(tmp_path))
    assert lines[1:] == ["logs of the application: on the nodes of the cluster"]


@pytest.mark.parametrize(
    ("scopes", "user", "shown"),
    [
        (("admin",), "alice", "any (default alice)"),
        (("admin", "read"), None, "any (default dana)"),
        (("read", "write"), "alice", "alice"),
    ],
)
def test_whose_memories_a_key_opens(
    scopes: tuple[Scope, ...], user: str | None, shown: str
) -> None:
    row = ApiKey(
        key_hash="0",
        principal="p",
        user_id=user,
        scopes=frozenset(scopes),
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
    )
    assert user_of(row, "dana") == shown


def test_tables_show_brackets_and_every_character(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr(console, "file", out)
    monkeypatch.setattr(console, "width", 20)
    table = table_of("name", "x")
    table.add_row("[red]:bug:" + "z" * 40, "1")
    console.print(table)
    assert isinstance(console, Console)
    joined = "".join(
        line.split("│")[1].strip() for line in out.getvalue().splitlines() if "│" in line
    )
    assert joined == "[red]:bug:" + "z" * 40


def test_a_tier_that_is_none_is_one_sentence() -> None:
    """Before any service is looked for."""
    done = RUNNER.invoke(app, ["add", "x", "--tier", "attic"])
    assert done.exit_code == 1
    assert isinstance(done.exception, InvalidInput)
    assert "'attic' is no tier; the tiers are working" in done.exception.message


@pytest.mark.parametrize(
    ("options", "kept", "told"),
    [
        ("", {"tier": "history"}, "Stored in history for 30 days: m0."),
        ("--tier books", {"tier": "books"}, "Stored in documents: m0."),
        (
            "--tier memory_bank",
            {"tier": "memory_bank", "tags": ["note"], "importance": 0.7, "confidence": 0.7},
            "Stored in memory_bank: m0.",
        ),
        (
            "--tier memory_bank --tag tea --tag תה --importance 0 --confidence 1",
            {"tier": "memory_bank", "tags": ["tea", "תה"], "importance": 0, "confidence": 1},
            "Stored in memory_bank: m0.",
        ),
        ("--tag tea", {"tier": "history", "tags": ["tea"]}, "Stored in history for 30 days: m0."),
    ],
)
def test_what_is_added_and_where_the_service_says_it_is(
    monkeypatch: pytest.MonkeyPatch, options: str, kept: dict[str, Any], told: str
) -> None:
    out = io.StringIO()
    monkeypatch.setattr(console, "file", out)
    with serving(FakeService()) as service:
        monkeypatch.setattr(stack, "url_of", lambda folder: service.url)
        done = RUNNER.invoke(app, ["add", "Dana drinks tea", *options.split()])
        assert (done.exit_code, out.getvalue().strip()) == (0, told)
        assert service.users["admin"]["m0"] == {"text": "Dana drinks tea"} | kept


def test_a_key_belongs_to_a_tenant(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name in one tenant is another than the same name in none."""
    service = ApiKeyService(InMemoryApiKeyStore(), clock=FakeClock(), cache_s=0)
    monkeypatch.setattr(keys, "_with_service", lambda folder, work: asyncio.run(work(service)))
    monkeypatch.setattr(keys, "_settings", lambda folder: load_settings("local", env={}))
    for options in (["--org", "acme"], []):
        done = RUNNER.invoke(app, ["keys", "create", "app", "--user", "dana", *options])
        assert done.output.startswith("rk_")
    refused = RUNNER.invoke(app, ["keys", "create", "app", "--user", "dana", "--org", "a/b"])
    assert isinstance(refused.exception, InvalidInput)
    assert RUNNER.invoke(app, ["keys", "revoke", "app", "--org", "acme"]).exit_code == 0
    left = {row.org_id: row.revoked_at is None for row in asyncio.run(service.all())}
    assert left == {"acme": False, None: True}
