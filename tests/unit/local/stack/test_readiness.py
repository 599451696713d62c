"""Waiting for a stack says why it waits, and ends early when nothing changes."""

from collections.abc import Iterator
from typing import Any

import pytest

from rayapp.core.errors import ConfigError, DependencyDown
from rayapp.local.stack import readiness
from rayapp.local.stack.readiness import NO_ANSWER, Readiness, ask, wait_ready
from rayapp.serve.haproxy_launch import REFUSAL
from tests.support.ports import free_port
from tests.unit.fake_service import FakeService, serving


@pytest.fixture
def service() -> Iterator[FakeService]:
    with serving(FakeService()) as started:
        yield started


def not_ready(*reasons: str, blocked: bool = False) -> dict[str, Any]:
    return {"ready": False, "reasons": list(reasons), "blocked": blocked}


def test_every_change_of_the_reasons_is_said_once(service: FakeService) -> None:
    away = not_ready("MongoDB is away.")
    service.answers = [not_ready("starting"), away, away, {"ready": True}]
    heard: list[str] = []
    wait_ready(service.url, heard.append)
    assert heard == ["starting", "MongoDB is away."]


def test_the_same_reasons_end_the_wait_and_are_in_the_error(
    service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "SAME_REASONS_S", 0.2)
    service.answers = [not_ready("MongoDB is away.")]
    with pytest.raises(DependencyDown, match=r"MongoDB is away\. See `rayapp status`"):
        wait_ready(service.url, lambda _: None)


def test_starting_is_no_reason_to_give_up_early(
    service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "SAME_REASONS_S", 0.0)
    from_haproxy = {"ready": False} | REFUSAL
    service.answers = [*[not_ready("starting"), from_haproxy] * 2, {"ready": True}]
    wait_ready(service.url, lambda _: None)
    assert service.answers == [{"ready": True}]


def test_what_a_person_has_to_fix_ends_the_wait_at_once(service: FakeService) -> None:
    service.answers = [not_ready("Run `rayapp job reindex`.", blocked=True)]
    with pytest.raises(ConfigError, match="rayapp job reindex"):
        wait_ready(service.url, lambda _: None)


def test_no_service_and_another_service_are_not_ready(service: FakeService) -> None:
    assert ask(f"http://127.0.0.1:{free_port()}") == Readiness(False, (NO_ANSWER,))
    assert ask(f"{service.url}/nowhere") == Readiness(False, ("status 404",))
