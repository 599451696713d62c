"""Plays written dialogues on the whole service over fakes, with a scripted model.

A dialogue is a row of a YAML file beside this one: `name`, `feature`, what is known before
(`given`) and `steps`, each of which does one thing and may say what must follow:

    ask: a question before its answer; `in`, `out`: parts of the block; `order`: parts, one after
        the other; `allowed`: tools that may be called; `hints`, `disclaimers`: what it asks for
    user, assistant: a finished turn; `message`: its id; `instead`: of the last one; `called`,
        `runs`: its tools
    score: a thumb on an answer; `message`: its id, else the last one
    prompt: the whole prompt of a question after `said`, in a `window`, of a `conversation`
    switch: open a conversation; `in`: what is shown again, `previous`: the one before
    delete: a conversation
    learn: the background work, until nothing is due
    days: time that passes
    state: what is stored, by memory id
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import yaml

from rayapp.assistant.conversations.service import ExchangeAnswer
from rayapp.assistant.records import AssistantContext, ContextRequest, ExchangeRequest, ScoreRequest
from rayapp.inference.chat.rules.answers import HistorySummary, OutcomeJudgement, ProfileFindings
from rayapp.inference.ports import HelperName, Message
from rayapp.learning.records import Recorder, ToolRun
from rayapp.memory.item import MemoryItem, Source, SourceType
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.memory.tiers import Tier
from tests.support.harness import Harness
from tests.unit.assistant.extraction.world import ScriptedAnswers

USER = "dana"
READ, WRITE = ReadScope(USER), WriteScope(USER)
DAY_S = 86_400


def dialogues() -> list[dict[str, Any]]:
    """All of them, in the order of their files."""
    files = sorted(Path(__file__).parent.glob("*.yaml"))
    return [row for file in files for row in yaml.safe_load(file.read_text(encoding="utf-8"))]


@dataclass
class Stage:
    """One dialogue while it is played."""

    service: Harness
    script: ScriptedAnswers
    messages: dict[str, list[Message]] = field(default_factory=lambda: defaultdict(list))
    turns: int = 0

    async def known(self, rows: Sequence[Mapping[str, Any]]) -> None:
        for row in rows:
            fields = dict(row)
            source = fields.pop("source", None)
            at = fields.pop("at", None)
            if at is not None:
                fields["created_at"] = datetime.combine(at, datetime.min.time(), UTC)
            if source is not None:
                fields["source"] = Source(**{**source, "type": SourceType(source["type"])})
            fields["memory_id"] = fields.pop("id", None)
            fields["tier"] = Tier(fields.get("tier", "history"))
            if fields["tier"] is Tier.MEMORY_BANK:
                fields = {"importance": 0.8, "confidence": 0.8, **fields}
            fields["tags"] = tuple(fields.get("tags", ("fact",)))
            await self.service.store(**fields)
        await self.service.drain()

    def play(self, model: Mapping[str, Any]) -> None:
        """What the model answers: by helper, a part of the person's words and the reply."""
        for helper, replies in model.items():
            self.script.answers[cast(HelperName, helper)] = _answer(helper, replies)

    async def do(self, step: Mapping[str, Any]) -> None:
        if "days" in step:
            self.service.clock.advance(step["days"] * DAY_S)
        elif "learn" in step:
            await self.learn()
        elif "state" in step:
            await self.check_state(step["state"])
        elif "ask" in step:
            await self.ask(step)
        elif "switch" in step:
            await self.switch(step)
        elif "score" in step:
            await self.score(step)
        elif "delete" in step:
            await self.service.services.conversations.delete(WRITE, step["delete"])
            await self.learn()
        elif "prompt" in step:
            await self.prompt(step)
        else:
            await self.turn(step)

    async def ask(self, step: Mapping[str, Any]) -> None:
        self.service.clock.advance(60)
        found = await self.service.services.context.prefetch(
            READ,
            ContextRequest(
                query=step["ask"],
                conversation_id=step.get("conversation", "c-1"),
                recent=tuple(self.messages[step.get("conversation", "c-1")][-10:]),
                tools=tuple(step.get("tools", ())),
                limit=step.get("limit"),
                recorder=Recorder(principal="agent"),
            ),
        )
        check_block(found, step)

    async def prompt(self, step: Mapping[str, Any]) -> None:
        """After `said`: what the person said before, each answered shortly."""
        recent = [
            one
            for text in step.get("said", ())
            for one in (Message("user", text), Message("assistant", "OK."))
        ]
        made = await self.service.services.prompt.build(
            READ,
            ContextRequest(
                query=step["prompt"], recent=tuple(recent), conversation_id=step.get("conversation")
            ),
            model="llama3.1:8b",
            window=step.get("window"),
        )
        text = "\n\n".join(part.text for part in made.parts)
        check_text(text, step)

    async def turn(self, step: Mapping[str, Any]) -> None:
        self.turns += 1
        self.service.clock.advance(60)
        said = [Message("user", step["user"]), Message("assistant", step["assistant"])]
        conversation = step.get("conversation", "c-1")
        before = self.messages[conversation]
        if step.get("instead"):
            del before[-2:]
        answer = await self.service.services.hooks.exchange(
            WRITE,
            ExchangeRequest(
                conversation_id=conversation,
                message_id=step.get("message", f"m-{self.turns}"),
                messages=(*before, *said),
                tools=tuple(step.get("tools", ())),
                tools_called=tuple(step.get("called", ())),
                tool_runs=tuple(ToolRun(**run) for run in step.get("runs", ())),
            ),
        )
        before += said
        await self.service.drain()
        check_turn(answer, step)

    async def score(self, step: Mapping[str, Any]) -> None:
        given = ScoreRequest(
            message_id=step.get("message", f"m-{self.turns}"),
            conversation_id=step.get("conversation", "c-1"),
            score=step["score"],
        )
        await self.service.services.hooks.score(WRITE, given)

    async def switch(self, step: Mapping[str, Any]) -> None:
        found = await self.service.services.conversations.switch(WRITE, step["switch"])
        assert found.previous == step.get("previous")
        turns = found.restored.turns if found.restored else ()
        check_text("\n".join(f"{one.question}\n{one.answer}" for one in turns), step)

    async def learn(self) -> None:
        while await self.service.container.learning.run_once():
            pass
        await self.service.settle()
        await self.service.drain()

    async def check_state(self, wanted: Mapping[str, Mapping[str, Any]]) -> None:
        for memory_id, values in wanted.items():
            item = await self.service.services.memories.get(READ, memory_id)
            for name, value in values.items():
                assert value_of(item, name) == value, f"{memory_id}: {name}"


def value_of(item: MemoryItem, name: str) -> Any:
    if name == "replaced":
        return item.superseded_by is not None
    if hasattr(item.stats, name):
        found = getattr(item.stats, name)
        return getattr(found, "value", found)
    found = getattr(item, name)
    return getattr(found, "value", found)


def check_text(text: str, step: Mapping[str, Any]) -> None:
    for part in step.get("in", ()):
        assert part in text, f"{part!r} is not in the block:\n{text}"
    for part in step.get("out", ()):
        assert part not in text, f"{part!r} is in the block:\n{text}"
    places = [text.find(part) for part in step.get("order", ())]
    assert -1 not in places, text
    assert places == sorted(places), f"{places} in:\n{text}"


def check_block(found: AssistantContext, step: Mapping[str, Any]) -> None:
    text = found.block.text
    check_text(text, step)
    if "allowed" in step:
        assert list(found.gating.allowed) == step["allowed"]
    if "hints" in step:
        assert list(found.intents.hints) == step["hints"]
    if "disclaimers" in step:
        assert [one.topic for one in found.intents.disclaimers] == step["disclaimers"]
    if "lines" in step:
        assert len(found.block.lines) == step["lines"], text


def check_turn(answer: ExchangeAnswer, step: Mapping[str, Any]) -> None:
    check_block(answer.context, step)


def _answer(helper: str, replies: Mapping[str, Any]) -> Any:
    def answer(variables: dict[str, Any]) -> Any:
        said = str(variables.get("next_message") or variables.get("user_text"))
        found = next((reply for part, reply in replies.items() if part in said), None)
        if helper in ("fact_extraction", "conversation_title"):
            return found or "NOTHING"
        if helper == "history_summary":
            talk = "\n".join(one.content for one in variables["messages"])
            bullets = [reply for part, reply in replies.items() if part in talk]
            return HistorySummary.model_validate({"bullets": bullets})
        if helper == "profile_detection":
            return ProfileFindings.model_validate({"items": found or []})
        outcome, confidence = found or ("unknown", 0.2)
        return OutcomeJudgement.model_validate({"outcome": outcome, "confidence": confidence})

    return answer


async def played(dialogue: Mapping[str, Any], **settings: Any) -> None:
    """From the first line to the last; AssertionError: what should follow did not."""
    service = await Harness.open(**settings)
    script = ScriptedAnswers()
    if "model" not in dialogue:
        script.off.update(script.answers)
    service.container.policies.models = script
    stage = Stage(service, script)
    stage.play(dialogue.get("model", {}))
    await stage.known(dialogue.get("given", ()))
    for step in dialogue["steps"]:
        await stage.do(step)
