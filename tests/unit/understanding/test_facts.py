"""The generated histories: what the graph must answer rightly, with no wrong merge."""

from collections import defaultdict

from jobs.suites.facts_set import KINDS, histories
from rayapp.core.scope import ReadScope
from tests.bench.facts import is_right, tell, wrong_merges
from tests.support.knowledge_world import KnowledgeWorld

OF_EACH = 6
MUST = {"exact": 0.95, "track": 0.85, "delete": 0.95, "cascade": 0.80, "absence": 0.80}
MUST |= {"as_of": 0.90, "ended": 0.90, "several": 0.90, "twins": 0.90, "revoked": 0.90}


async def test_facts_stay_true() -> None:
    right: dict[str, list[bool]] = defaultdict(list)
    for history in histories(11, OF_EACH):
        world = KnowledgeWorld()
        await tell(world, history)
        assert await wrong_merges(world, history) == 0, history.history_id
        for question in history.questions:
            answer = await world.knowledge.query(ReadScope(history.history_id), question.asked)
            right[question.kind].append(is_right(question, answer))
    shares = {kind: sum(right[kind]) / len(right[kind]) for kind in KINDS}
    assert {kind for kind in KINDS if shares[kind] < MUST[kind]} == set(), shares
