"""What imports Ray. Only tests marked `ray` start it; elsewhere that is a mistake."""

import pytest
import ray


@pytest.fixture(autouse=True)
def _no_ray(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object, **_kwargs: object) -> None:
        raise AssertionError("a test without the mark `ray` must not start Ray")

    if request.node.get_closest_marker("ray") is None:
        monkeypatch.setattr(ray, "init", refuse)
