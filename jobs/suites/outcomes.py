"""Does the service learn? Outcomes alone must put the good memory before the bad one.

    pair            each scenario is a user of its own with two memories
    pooled          all scenarios in one user: sixty memories compete
    contradictions  outdated and current facts of both languages in one user
    same store      LoCoMo before and after its users were given the judged advice: the loss
    sabotage        another user floods false outcomes about the pooled user's memories; a second
                    key of the same user is tried in tests/unit/api/test_guests.py

Maturity is driven through `POST /api/memory/outcomes` only, and nothing is deleted.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from jobs.suites.locomo import load_locomo
from jobs.suites.runner import ServiceSuite, SuiteRun, run_suite, user_of
from jobs.suites.scenarios import Scenario, load_adversarial, load_contradictions
from jobs.suites.searched import Searched
from jobs.suites.suite import Suite
from rayapp.client import Memory, SearchReply
from rayapp.client.learning import OutcomeName
from rayapp.client.progress import Bar, wait_indexed
from rayapp.core.errors import NotFound

TIER = "history"
LIMIT = 50  # results asked per question
LEVELS = (0, 1, 2, 3, 5)  # outcomes per memory after which the order is looked at
JUDGED_LEVEL = 3  # outcomes per memory when LoCoMo is asked again
FLOOD = 3  # false outcomes per memory that the saboteur tries


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomesSet:
    """Advice that outcomes tell apart, facts that replace others, and LoCoMo beside them."""

    scenarios: tuple[Scenario, ...]
    contradictions: tuple[Scenario, ...]
    locomo: Suite


def load_outcomes(data: Path) -> OutcomesSet:
    """The sets under `data`, and our own. Raises ConfigError as their loaders."""
    return OutcomesSet(
        scenarios=load_adversarial(data),
        contradictions=load_contradictions(),
        locomo=load_locomo(data),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioRanks:
    """Ranks from 1; None = not among the results."""

    scenario_id: str
    lang: str
    level: int
    good: int | None
    bad: int | None

    @property
    def good_first(self) -> bool:
        return self.good is not None and (self.bad is None or self.good < self.bad)


@dataclass(slots=True)
class FormRun:
    """One form at every level."""

    form: str
    placed: list[ScenarioRanks] = field(default_factory=list)
    stored: int = 0
    kept: int = 0
    archived: int = 0

    def share(self, level: int) -> tuple[float, float, int, int]:
        """(of all, of those whose good one is a candidate, all, candidates)."""
        at = [one for one in self.placed if one.level == level]
        candidates = [one for one in at if one.good is not None]
        first = sum(one.good_first for one in at)
        return (
            first / len(at) if at else 0.0,
            first / len(candidates) if candidates else 0.0,
            len(at),
            len(candidates),
        )


@dataclass(slots=True)
class Sabotage:
    tried: int = 0
    refused: int = 0
    flipped: int = 0


@dataclass(slots=True)
class OutcomesRun:
    """Everything a report needs. `rejected`: memories of the scenarios that were not stored."""

    forms: list[FormRun] = field(default_factory=list)
    before: SuiteRun | None = None
    after: SuiteRun | None = None
    sabotage: Sabotage = field(default_factory=Sabotage)
    rejected: list[str] = field(default_factory=list)
    asked: Searched = field(default_factory=Searched)

    @property
    def locomo(self) -> list[SuiteRun]:
        """LoCoMo before and after, as far as it was asked."""
        return [part for part in (self.before, self.after) if part is not None]

    @property
    def searched(self) -> Searched:
        return sum((part.searched for part in self.locomo), self.asked)

    @property
    def failures(self) -> int:
        """Memories that were refused or vanished, and false outcomes that did something.

        A rule may archive what failed again and again: such a memory is kept, and counted.
        """
        gone = sum(form.stored - form.kept for form in self.forms)
        sabotage = self.sabotage.tried - self.sabotage.refused + self.sabotage.flipped
        return gone + sabotage + len(self.rejected) + sum(part.failures for part in self.locomo)


@dataclass
class OutcomesSuite(ServiceSuite[OutcomesSet]):
    """Runs all forms through the public API under users of this run alone."""

    _searched: Searched = field(default_factory=Searched, init=False)
    # The code, by user and memory.
    _refused: dict[tuple[str, str], str] = field(default_factory=dict, init=False)

    @cached_property
    def _locomo(self) -> Suite:
        return self.loaded.locomo.sampled(self.limit_questions)

    async def run(self) -> OutcomesRun:
        """Raises RayappError: the service is away or refuses the caller."""
        run = OutcomesRun(asked=self._searched)
        run.before = await run_suite(self.client, self._locomo, self.options, self.progress)
        pairs = [((one,), self._user(f"pair-{one.scenario_id}")) for one in self.loaded.scenarios]
        run.forms.append(await self._form("pair", pairs))
        pooled = [(self.loaded.scenarios, self._user("pooled"))]
        run.forms.append(await self._form("pooled", pooled))
        own = [(self.loaded.contradictions, self._user("contradictions"))]
        run.forms.append(await self._form("contradictions", own))
        run.sabotage = await self._sabotage()
        await self._judge_in_locomo()
        run.after = await run_suite(self.client, self._locomo, self.options, self.progress)
        run.rejected = [f"{user} {name}: {code}" for (user, name), code in self._refused.items()]
        return run

    def _user(self, name: str) -> str:
        return f"eval-outcomes-{name}-{self.options.run_id}"

    async def _form(self, form: str, groups: Sequence[tuple[Sequence[Scenario], str]]) -> FormRun:
        run = FormRun(form)
        count = sum(len(scenarios) for scenarios, _ in groups)
        for scenarios, user_id in groups:
            run.stored += await self._store(scenarios, user_id)
        await wait_indexed(self.client, self.progress, f"outcomes {form}: index", encoded=True)
        with self.progress.step(f"outcomes {form}", count * len(LEVELS)) as bar:
            done = 0
            for level in LEVELS:
                for scenarios, user_id in groups:
                    await self._judge(scenarios, user_id, range(done, level))
                    run.placed += await self._look(scenarios, user_id, level, bar)
                done = level
        for scenarios, user_id in groups:
            await self._count(scenarios, user_id, run)
        return run

    async def _store(self, scenarios: Sequence[Scenario], user_id: str) -> int:
        memories = [
            Memory(text=text, tier=TIER, memory_id=memory_id)
            for one in scenarios
            for memory_id, text in ((one.good_id, one.good), (one.bad_id, one.bad))
        ]
        replies = await self.client.store_batch(memories, user_id=user_id)
        for memory, reply in zip(memories, replies, strict=True):
            if reply.status == "rejected":
                self._refused[user_id, str(memory.memory_id)] = reply.code or "rejected"
        return sum(reply.status == "stored" for reply in replies)

    async def _judge(
        self, scenarios: Sequence[Scenario], user_id: str, rounds: Sequence[int]
    ) -> None:
        """One `worked` for the good and one `failed` for the bad per round, through receipts."""
        for number in rounds:
            for one in scenarios:
                receipt = (await self._search(one, user_id)).receipt_id
                judged: tuple[tuple[str, OutcomeName], ...] = (
                    (one.good_id, "worked"),
                    (one.bad_id, "failed"),
                )
                for memory_id, outcome in judged:
                    if (user_id, memory_id) in self._refused:
                        continue
                    await self.client.record_outcome(
                        outcome,
                        memory_ids=[memory_id],
                        receipt_id=receipt,
                        idempotency_key=f"{memory_id}-{number}",
                        user_id=user_id,
                    )

    async def _look(
        self, scenarios: Sequence[Scenario], user_id: str, level: int, bar: Bar
    ) -> list[ScenarioRanks]:
        placed = []
        for one in scenarios:
            ids = (await self._search(one, user_id)).ids
            place = {name: rank for rank, name in enumerate(ids, start=1)}
            placed.append(
                ScenarioRanks(
                    scenario_id=one.scenario_id,
                    lang=one.lang,
                    level=level,
                    good=place.get(one.good_id),
                    bad=place.get(one.bad_id),
                )
            )
            bar.advance()
        return placed

    async def _search(self, scenario: Scenario, user_id: str) -> SearchReply:
        reply = await self.client.search(
            scenario.query, limit=LIMIT, recipe=self.options.recipe, user_id=user_id
        )
        self._searched.add(reply.degraded)
        return reply

    async def _count(self, scenarios: Sequence[Scenario], user_id: str, run: FormRun) -> None:
        """How many of the memories are still there: learning must not win by deleting."""
        for one in scenarios:
            for memory_id in (one.good_id, one.bad_id):
                try:
                    item = await self.client.item(memory_id, user_id=user_id)
                except NotFound:
                    continue
                run.kept += 1
                run.archived += item.status == "archived"

    async def _sabotage(self) -> Sabotage:
        """False outcomes of another user, by id and by the victim's receipt."""
        done, victim, flooder = Sabotage(), self._user("pooled"), self._user("saboteur")
        honest = {one.scenario_id: one.good_first for one in await self._rank_quickly(victim)}
        for one in self.loaded.scenarios:
            receipt = (await self._search(one, victim)).receipt_id
            for number in range(FLOOD):
                done.tried += 1
                try:
                    await self.client.record_outcome(
                        "failed",
                        memory_ids=[one.good_id],
                        receipt_id=receipt if number % 2 else None,
                        user_id=flooder,
                    )
                except NotFound:
                    done.refused += 1
        after = {one.scenario_id: one.good_first for one in await self._rank_quickly(victim)}
        done.flipped = sum(honest[name] != after[name] for name in honest)
        return done

    async def _rank_quickly(self, user_id: str) -> list[ScenarioRanks]:
        with self.progress.step("outcomes sabotage", len(self.loaded.scenarios)) as bar:
            return await self._look(self.loaded.scenarios, user_id, LEVELS[-1], bar)

    async def _judge_in_locomo(self) -> None:
        """Give every LoCoMo user the advice, judged: it must not cost their own answers."""
        corpora = self._locomo.corpora
        with self.progress.step("outcomes same store", len(corpora)) as bar:
            for corpus in corpora:
                user_id = user_of(self._locomo, corpus, self.options.run_id)
                await self._store(self.loaded.scenarios, user_id)
                await self._judge(self.loaded.scenarios, user_id, range(JUDGED_LEVEL))
                bar.advance()
        await wait_indexed(self.client, self.progress, "outcomes same store: index", encoded=True)
