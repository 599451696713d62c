"""Does a search return what was asked for, and nothing else? PrecisionMemBench over the API.

A client builds a context as it would for an assistant: what is pinned in the scope, the open
questions, a prelude of what holds everywhere, and the search among the rest. Three ways to ask:

    named      `named_only`: memories that the question names
    relevant   `min_relevance`: memories that are likely to answer, by the calibration
    plain      the best hits, as a search returns them by default
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, NamedTuple
from urllib.parse import urlencode

from pydantic import BaseModel, ConfigDict

from jobs.suites.precision_set import OPEN_QUESTION, RELATION, TIER, UNIVERSAL, Case, PrecisionSet
from jobs.suites.runner import ServiceSuite
from jobs.suites.searched import Searched
from jobs.suites.suite import spread
from rayapp.client import HitView
from rayapp.client.progress import Bar, wait_indexed

LIMIT = 10  # hits of one search: a context's worth
LIST_LIMIT = 100  # pinned memories of a scope; the set has far fewer
EVEN = 0.5  # relevance from which a hit answers more likely than not
WAYS: Mapping[str, Mapping[str, Any]] = {
    "named": {"named_only": True},
    "relevant": {"min_relevance": EVEN},
    "plain": {},
}
HEADLINE = "named"


class _Listed(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    memory_id: str
    text: str
    tags: tuple[str, ...]
    confidence: float


class _List(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    items: tuple[_Listed, ...]


class Context(NamedTuple):
    """What a client puts together for one case; ids in the set's own names."""

    prelude: str = ""
    pinned: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    relevant: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """`reason` says what was wrong; None = passed."""

    case_id: str
    category: str
    way: str
    active: bool
    reason: str | None
    relevant: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        return self.reason is None


@dataclass(slots=True)
class PrecisionRun:
    """Everything a report needs."""

    results: list[CaseResult] = field(default_factory=list)
    stored: int = 0
    rejected: list[str] = field(default_factory=list)
    searched: Searched = field(default_factory=Searched)

    @property
    def failures(self) -> int:
        """Memories that were not stored. A case that does not pass is a result, no failure."""
        return len(self.rejected)

    def share(self, way: str, *, active: bool | None = None) -> tuple[int, int]:
        """(passed, asked) of the cases asked that way."""
        asked = [
            one
            for one in self.results
            if one.way == way and (active is None or one.active is active)
        ]
        return sum(one.passed for one in asked), len(asked)


@dataclass
class PrecisionSuite(ServiceSuite[PrecisionSet]):
    """Runs all cases in all ways under users of this run alone."""

    _searched: Searched = field(default_factory=Searched, init=False)

    @cached_property
    def _cases(self) -> Sequence[Case]:
        return spread(self.loaded.cases, self.limit_questions)

    async def run(self) -> PrecisionRun:
        """Raises RayappError: the service is away or refuses the caller."""
        run = PrecisionRun(searched=self._searched)
        for owner, memories in self.loaded.beliefs.items():
            replies = await self.client.store_batch(memories, user_id=self._user(owner))
            run.stored += sum(reply.status == "stored" for reply in replies)
            run.rejected += [
                f"{memory.memory_id}: {reply.code}"
                for memory, reply in zip(memories, replies, strict=True)
                if reply.status == "rejected"
            ]
        await wait_indexed(self.client, self.progress, "precision: index", encoded=True)
        with self.progress.step("precision: ask", len(self._cases) * len(WAYS)) as bar:
            for way in WAYS:
                run.results += await self._asked(way, bar)
        return run

    async def _asked(self, way: str, bar: Bar) -> list[CaseResult]:
        results = []
        for case in self._cases:
            context = await self._context(case, way)
            results.append(
                CaseResult(
                    case_id=case.case_id,
                    category=case.category,
                    way=way,
                    active=case.active,
                    reason=verdict(case, context),
                    relevant=context.relevant,
                )
            )
            bar.advance()
        return results

    def _user(self, owner: str) -> str:
        return f"eval-precision-{owner}-{self.options.run_id}"

    async def _context(self, case: Case, way: str) -> Context:
        everywhere = await self._pinned(case.owner, (UNIVERSAL,))
        pinned = await self._pinned(case.owner, case.scopes)
        facts = [one.memory_id for one in pinned if OPEN_QUESTION not in one.tags][: case.budget]
        questions = [one.memory_id for one in pinned if OPEN_QUESTION in one.tags]
        left = LIMIT if case.budget is None else min(LIMIT, case.budget - len(facts))
        hits: list[HitView] = []
        if case.query.strip() and left > 0:
            hits = (await self._found(case, case.query, way))[:left]
        tags = {hit.memory_id: hit.tags for hit in hits}
        return Context(
            prelude="\n".join(one.text for one in everywhere),
            pinned=tuple(facts),
            questions=(*questions, *(name for name in tags if OPEN_QUESTION in tags[name])),
            relevant=tuple(name for name in tags if OPEN_QUESTION not in tags[name]),
        )

    async def _pinned(self, owner: str, scopes: Sequence[str]) -> list[_Listed]:
        """Pinned memories that hold now, the surest first."""
        fields = {
            "tags": scopes,
            "tiers": TIER,
            "always_inject": "true",
            "valid_at": datetime.now(UTC).isoformat(),
            "limit": LIST_LIMIT,
        }
        path = f"/api/memory/items?{urlencode(fields, doseq=True)}"
        found = await self.client.read(_List, path, user_id=self._user(owner))
        return sorted(found.items, key=lambda one: -one.confidence)

    async def _found(self, case: Case, query: str, way: str) -> list[HitView]:
        """The hits, and behind each relation what its text asks for in turn."""
        hits = await self._search(case, query, way)
        known = {hit.memory_id for hit in hits}
        for relation in [hit for hit in hits if RELATION in hit.tags]:
            for hit in await self._search(case, relation.content, way):
                if hit.memory_id not in known:
                    known.add(hit.memory_id)
                    hits.append(hit)
        return hits

    async def _search(self, case: Case, query: str, way: str) -> list[HitView]:
        reply = await self.client.search(
            query,
            limit=LIMIT,
            tiers=[TIER],
            recipe=self.options.recipe,
            user_id=self._user(case.owner),
            filters={"tags": case.scopes, "always_inject": False},
            **WAYS[way],
        )
        self._searched.add(reply.degraded)
        return list(reply.results)


def verdict(case: Case, context: Context) -> str | None:
    """Why the case is not passed; None when it is."""
    problems = (
        case.relevant.problem("relevant", context.relevant),
        case.pinned.problem("pinned", context.pinned),
        case.questions.problem("open questions", context.questions),
        case.prelude.problem(context.prelude),
    )
    return next((problem for problem in problems if problem is not None), None)
