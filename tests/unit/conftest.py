"""Unit tests start nothing: a Ray that would start by itself is a mistake."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _no_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    import ray

    def refuse(*_args: object, **_kwargs: object) -> None:
        raise AssertionError("a unit test must not start Ray")

    monkeypatch.setattr(ray, "init", refuse)
