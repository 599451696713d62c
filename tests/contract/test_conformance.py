"""Document and answers agree, by generated calls: what concerns all users, on fakes.

The routes of one user's data are called on the running service, in `tests/integration`.
"""

import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import uvicorn

from rayapp.api.app import create_api
from tests.conformance import document_of, kept, violations
from tests.running import until
from tests.support.harness import Harness
from tests.support.ports import free_port


@pytest.fixture
async def served() -> AsyncIterator[str]:
    world = Harness.ready()
    port = free_port()
    config = uvicorn.Config(create_api(world.services), port=port, log_level="critical")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        until(lambda: server.started)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()


@pytest.mark.process
async def test_generated_calls_of_operators_are_answered_as_documented(
    served: str, tmp_path: Path
) -> None:
    made, found = violations(served, kept(document_of(served), admin=True), tmp_path)
    assert found == [], "\n".join(found)
    assert made > 500
