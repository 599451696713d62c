"""How the driver of a stored job is started: what Ray is told, and what is said when it refuses."""

import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from rayapp.bulk.model import Job
from rayapp.core.errors import InvalidInput, JobsDown
from rayapp.core.settings.load import load_settings
from rayapp.core.settings.model import Settings
from rayapp.serve import job_launcher
from rayapp.serve.job_launcher import RayJobLauncher, job_environment

JOB = Job(job_id="j-1", kind="reindex", params={}, created_at=datetime(2026, 5, 1, tzinfo=UTC))


class Client:
    """Stands for Ray's client; `asked` is what it was told."""

    asked: list[dict[str, Any]] = []  # noqa: RUF012
    error: Exception | None = None

    def __init__(self, address: str) -> None:
        self.address = address

    def submit_job(self, **arguments: Any) -> str:
        if self.error is not None:
            raise self.error
        self.asked.append(arguments)
        return str(arguments["submission_id"])


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> type[Client]:
    class Fresh(Client):
        asked: list[dict[str, Any]] = []  # noqa: RUF012

    monkeypatch.setattr("ray.job_submission.JobSubmissionClient", Fresh)
    monkeypatch.setattr(job_launcher, "cluster_address", lambda: "127.0.0.1:1")
    return Fresh


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load_settings(env={}, overrides={"data": {"dir": str(tmp_path)}})


async def test_a_job_is_started_by_its_module_under_a_name_and_a_new_id_each_time(
    client: type[Client], settings: Settings
) -> None:
    launcher = RayJobLauncher(settings)
    first, second = await launcher.launch(JOB), await launcher.launch(JOB)
    assert first != second
    assert "j-1" in first
    assert client.asked[0]["entrypoint"] == f"{sys.executable} -m jobs.reindex --job-id j-1"
    assert client.asked[0]["metadata"] == {"job_name": "reindex", "job_id": "j-1"}


@pytest.mark.parametrize("kind", ["", "os;rm", "../x", "A", "a b", "a.b"])
async def test_a_kind_that_is_no_module_name_is_refused(
    kind: str, client: type[Client], settings: Settings
) -> None:
    with pytest.raises(InvalidInput):
        await RayJobLauncher(settings).launch(
            Job(job_id="j", kind=kind, params={}, created_at=JOB.created_at)
        )
    assert client.asked == []


@pytest.mark.parametrize("error", [ConnectionError("refused"), RuntimeError("401"), OSError("x")])
async def test_a_cluster_that_takes_no_jobs_is_one_sentence(
    error: Exception, client: type[Client], settings: Settings
) -> None:
    client.error = error
    with pytest.raises(JobsDown, match="dashboard") as caught:
        await RayJobLauncher(settings).launch(JOB)
    assert caught.value.details["error"] == str(error)
    client.error = None
    assert await RayJobLauncher(settings).launch(JOB)


def test_beside_a_local_stack_the_folder_is_all_a_driver_is_told(
    settings: Settings, tmp_path: Path
) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "state.json").write_text("{}", encoding="utf-8")
    env = {"MONGODB_URI": "mongodb://u:secret@h", "RAYAPP_HTTP__PORT": "1"}
    assert job_environment(settings, env) == {"RAYAPP_DATA__DIR": str(tmp_path.resolve())}


@pytest.mark.parametrize("by_node", [{}, {"RAYAPP_PROFILE": "local"}])
def test_elsewhere_a_driver_gets_the_settings_of_this_process_but_no_secret(
    by_node: dict[str, str], tmp_path: Path
) -> None:
    """Serve's arguments choose the profile, whatever the environment says."""
    env = {
        **by_node,
        "RAYAPP_STACK": "mark",
        "RAYAPP_JOBS__LEASE_S": "20",
        "RAYAPP_BACKUP__DIR": "/mnt/archives",
        "RAYAPP_DATAGOV__CKAN_URL": "https://data.gov.il",
        "MONGODB_URI": "mongodb://u:secret@h:27017",
        "RAYAPP_MONGO__URI": "mongodb://u:secret@h:27017",
        "REDIS_URL": "redis://:secret@h",
        "QDRANT_URL": "http://h:6333",
        "RAYAPP_QDRANT__API_KEY": "secret",
        "RAY_ADDRESS": "10.0.0.1:6379",
        "HOME": "/home/u",
    }
    settings = load_settings("prod", env=env, overrides={"data": {"dir": str(tmp_path)}})
    assert job_environment(settings, env) == {
        "RAYAPP_PROFILE": "prod",
        "RAYAPP_JOBS__LEASE_S": "20",
        "RAYAPP_BACKUP__DIR": "/mnt/archives",
        "RAYAPP_DATAGOV__CKAN_URL": "https://data.gov.il",
        "RAYAPP_DATA__DIR": str(tmp_path.resolve()),
    }


def test_no_setting_that_may_hold_a_secret_is_told(settings: Settings) -> None:
    words = ("uri", "url", "key", "token", "password", "secret")
    harmless = {"ckan_url", "max_tokens", "tokens_per_free_gib", "token_auth"}
    names = [
        f"{group}__{name}"
        for group, value in settings.model_dump().items()
        if isinstance(value, dict)
        for name, found in value.items()
        if isinstance(found, str) and any(word in name for word in words) and name not in harmless
    ]
    assert {"mongo__uri", "redis__url", "qdrant__api_key"} <= set(names)
    env = {f"RAYAPP_{name.upper()}": "secret" for name in names}
    assert "secret" not in job_environment(settings, env).values()


async def test_a_dashboard_that_hangs_keeps_one_thread(
    client: type[Client], settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered = threading.Event()
    monkeypatch.setattr(client, "submit_job", lambda *_, **__: answered.wait())
    monkeypatch.setattr(job_launcher, "TIMEOUT_S", 0.01)
    before, launcher = threading.active_count(), RayJobLauncher(settings)
    for _ in range(5):
        with pytest.raises(JobsDown):
            await launcher.launch(JOB)
    assert threading.active_count() <= before + 1
    answered.set()
