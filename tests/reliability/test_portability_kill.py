"""Exports, imports, restores, backups and erasures killed -9: the old state or the new one.

The whole of it: `python -m tests.reliability.portability_kills`.
"""

import pytest

from tests.reliability.portability_kills import ACTS, trials

pytestmark = [pytest.mark.engine, pytest.mark.fault, pytest.mark.takes(130)]
KILLS = 2


async def test_what_is_killed_is_whole_after_a_repeat() -> None:
    found = await trials(KILLS, seed=7, memories=300)
    assert {one.name: one.wrong for one in found} == {name: [] for name in ACTS}
    assert sum(one.kills - one.late for one in found) > len(ACTS)
