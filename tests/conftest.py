"""The running service: one stack per test session, started the way a user starts it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.scripted_model import load_script, script_of, serving
from tests.running import RunningService, started


@pytest.fixture(scope="session")
def scripted_model() -> Iterator[str]:
    """The language model that the running service asks; it only knows the example's script."""
    with serving(script_of(load_script())) as url:
        yield url


@pytest.fixture(scope="session")
def service(scripted_model: str) -> Iterator[RunningService]:
    """A ready stack of its own, with its own data; shared by every test that asks for it."""
    # A short folder: unix sockets below it have at most 107 bytes.
    with tempfile.TemporaryDirectory(prefix="rayapp-t-") as folder:
        running = started(Path(folder), models={"base_url": scripted_model, "model": "scripted"})
        try:
            yield running
        finally:
            running.down()


@pytest.fixture(scope="session")
def realdata() -> Path:
    """The folder of real data; a test that asks for it fails when it is not there."""
    folder = os.environ.get("RAYAPP_REALDATA")
    assert folder, "Set RAYAPP_REALDATA to the folder of the evaluation sets."
    return Path(folder)
