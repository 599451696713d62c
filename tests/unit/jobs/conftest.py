"""What the tests of jobs share."""

import pytest

from jobs.suites import runner


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """The services of these tests hold a user at once."""
    monkeypatch.setattr(runner, "SETTLED_S", 0.0)
    monkeypatch.setattr(runner, "HELD_S", 0.0)
