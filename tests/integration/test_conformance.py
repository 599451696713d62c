"""Document and answers agree on the running service, by generated calls on one user's data."""

from pathlib import Path

import pytest

from tests.conformance import document_of, kept, violations
from tests.running import RunningService

pytestmark = [pytest.mark.ray, pytest.mark.engine]


def test_generated_calls_are_answered_as_documented(
    service: RunningService, tmp_path: Path
) -> None:
    made, found = violations(service.url, kept(document_of(service.url), admin=False), tmp_path)
    assert found == [], "\n".join(found)
    assert made > 1_000
