"""The running service: one stack per test session, started the way a user starts it."""

import functools
import gc
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from hypothesis import HealthCheck, settings

from examples.scripted_model import load_script, script_of
from tests.played_model import PlayedModel, playing
from tests.running import RunningService, started
from tests.support.examples import examples

# Of the shared stack's language model: its optional helper is on, and tests need not wait long for
# an answer that does not come, nor for a breaker to close.
MODELS = {"model": "scripted", "prefix_timeout_s": 2.0, "helpers": {"contextual_prefix": True}}
BREAKER_OPEN_S = 10.0
# Of a killed indexer's claim: a third of the default, so that tests wait less for its end.
CLAIM_S = 20.0

# New objects between two collections: the default of 700 has the collector run in every test.
GC_EVERY = 20_000

# How long an example takes says how busy the machine is, not whether a rule holds.
settings.register_profile(
    "untimed",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    max_examples=examples(100),
)
settings.load_profile("untimed")


@pytest.fixture(scope="session", autouse=True)
def _one_tls_context() -> Iterator[None]:
    """Every client over a socket has one and no test speaks TLS: the certificates are read once."""
    with pytest.MonkeyPatch.context() as patch:
        made = functools.cache(httpx.create_ssl_context)
        patch.setattr("httpx._transports.default.create_ssl_context", made)
        yield


@pytest.fixture(scope="session")
def played_model() -> Iterator[PlayedModel]:
    """The language model that the running service asks: the example's script, and what is set."""
    with playing(script_of(load_script())) as model:
        yield model


def pytest_collection() -> None:
    """Nearly nothing of what is collected is garbage: the collector would walk it for seconds."""
    gc.disable()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Modules and collected tests stay to the end: the garbage collector need not walk them."""
    if session.config.getoption("forks", 1) > 1:
        _read_once()
    gc.freeze()
    gc.set_threshold(GC_EVERY)
    gc.enable()


def _read_once() -> None:
    """What each forked process would read and build for itself: two seconds in each."""
    from rayapp.api.app import create_api
    from rayapp.container import bootstrap

    bootstrap.load_texts()
    create_api(None).openapi()


@pytest.fixture(scope="session")
def scripted_model(played_model: PlayedModel) -> str:
    """Where it answers."""
    return played_model.url


@pytest.fixture(scope="session")
def service(scripted_model: str) -> Iterator[RunningService]:
    """A ready stack of its own, with its own data; shared by every test that asks for it."""
    # A short folder: unix sockets below it have at most 107 bytes.
    with tempfile.TemporaryDirectory(prefix="rayapp-t-") as folder:
        running = started(
            Path(folder),
            models={"base_url": scripted_model, **MODELS},
            breaker={"open_s": BREAKER_OPEN_S},
            indexer={"claim_s": CLAIM_S},
            compat={"first_client": True},
            webhooks={"allow_private": True},
        )
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
