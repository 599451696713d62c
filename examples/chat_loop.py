"""A chat program with a memory: 30 turns over three conversations, in Hebrew and English.

    python -m examples.chat_loop --url http://127.0.0.1:8000 --model http://127.0.0.1:9100/v1

Around each turn it does what a real program does: it asks the service for the context and for the
tools that are needed (`exchange`), lets the model answer, calls the tools that the model wants,
hands the answer back to be kept (`exchange` again), and says how suggestions went
(`record_response`). The service learns the facts by itself, from a model at its own
`models.base_url`; `examples.scripted_model` plays both models.

It ends with 3 when one of four promises is broken: facts are kept once, they are recalled in a
later conversation, what failed is not offered first again, and tools stay away when memory is
enough. It ends with 4, before the first turn, when the service may not ask a model.
"""

import argparse
import json
import sys
import time
import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from examples.scripted_model import MEMORY, WEB_SEARCH, load_script
from rayapp.assistant.conversations.rules import read_attribution
from rayapp.client import Memory, SyncMemoryClient
from rayapp.client.learning import OutcomeName
from rayapp.core.errors import RayappError

BROKEN = 3
NO_HELPERS = 4
# The service's helper without which no fact is ever learned.
LEARNER = "fact_extraction"
# How long the service may take to learn from a conversation, seconds, and the pause between looks.
LEARN_S, LOOK_S = 60.0, 0.5
# Messages of the conversation that the model sees.
REMEMBERED = 6
FACT_TAG = "fact"
MODEL_TIMEOUT_S = 30.0
TOOLS = (WEB_SEARCH, "search_memory", "record_response")


@dataclass(slots=True)
class Turn:
    """One turn as it went."""

    conversation: str
    number: int
    said: str
    answer: str = ""
    asks: str | None = None
    shown: list[str] = field(default_factory=list)
    used: list[str] = field(default_factory=list)
    allowed: list[str] = field(default_factory=list)
    reason: str = ""
    called: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Result:
    """The transcript, what was learned, and whether the promises hold."""

    turns: list[Turn] = field(default_factory=list)
    facts: dict[str, int] = field(default_factory=dict)
    promises: dict[str, bool] = field(default_factory=dict)
    why: dict[str, str] = field(default_factory=dict)

    @property
    def kept(self) -> bool:
        return all(self.promises.values())


class Chat:
    """The program. `run` makes ids that no earlier run used."""

    def __init__(self, client: SyncMemoryClient, model_url: str, script: Mapping[str, Any]) -> None:
        self._client = client
        self._model = httpx.Client(timeout=MODEL_TIMEOUT_S, trust_env=False)
        self._model_url = f"{model_url.rstrip('/')}/chat/completions"
        self._script = script
        self._run = uuid.uuid4().hex[:8]
        self._schemas = _schemas(client)
        self._quoted: list[str] = []  # ids of the memories that the last answer quoted

    def play(self, console: Console) -> Result:
        """All conversations, one after the other."""
        result = Result()
        for text in self._script["known"]:
            self._client.store(Memory(text=text, tier="history"))
        self._client.wait_indexed()
        wanted: Counter[str] = Counter()
        for conversation in self._script["conversations"]:
            name = f"{conversation['id']}-{self._run}"
            console.rule(name)
            messages: list[dict[str, Any]] = []
            for number, scripted in enumerate(conversation["turns"], start=1):
                turn = Turn(conversation["id"], number, scripted["say"], asks=scripted.get("asks"))
                self._turn(name, turn, scripted, messages)
                result.turns.append(turn)
                _show(console, turn)
                if "fact" in scripted:
                    wanted[scripted["fact"]] += 1
            self._learned(wanted)
        result.facts = {fact: self._copies(fact) for fact in wanted}
        _judge(result, wanted)
        return result

    def close(self) -> None:
        self._model.close()

    def _turn(
        self,
        conversation: str,
        turn: Turn,
        scripted: Mapping[str, Any],
        messages: list[dict[str, Any]],
    ) -> None:
        if "after" in scripted:
            self._report(conversation, scripted["after"])
        message_id = f"{conversation}-{turn.number}"
        messages.append({"role": "user", "content": turn.said})
        asked = [{"role": "system", "content": self._script["system"]}, *messages[-REMEMBERED:]]
        given = self._client.exchange(conversation, message_id, asked, tools=TOOLS)
        gating = given.gating
        turn.allowed, turn.reason = list(gating.allowed_tools or ()), gating.reason_code
        lines = MEMORY.findall(given.messages[0]["content"])
        turn.shown = [text for _, _, _, text in lines]
        answer = self._answer(turn, list(given.messages))
        turn.answer = read_attribution(answer).text
        quoted = [(memory_id, text) for _, _, memory_id, text in lines if text in turn.answer]
        turn.used = [text for _, text in quoted]
        self._quoted = [memory_id for memory_id, _ in quoted]
        # Handed back with its marks, so that the service scores what the answer was given with.
        said = {"role": "assistant", "content": answer}
        kept = self._client.exchange(
            conversation, message_id, [*asked, said], tools=TOOLS, tools_called=turn.called
        )
        messages.append({"role": "assistant", "content": turn.answer})
        if kept.stored is None:
            raise RayappError(f"The turn {message_id} was not kept; look at the service's log.")

    def _answer(self, turn: Turn, messages: list[dict[str, Any]]) -> str:
        """The model's answer, after the tools that it wanted."""
        tools = [self._schemas[name] for name in turn.allowed]
        message = self._complete(messages, tools)
        for wanted in message.get("tool_calls") or ():
            name, arguments = wanted["function"]["name"], wanted["function"]["arguments"]
            turn.called.append(name)
            found = self._call(turn, name, arguments)
            messages += [message, {"role": "tool", "tool_call_id": wanted["id"], "content": found}]
        if turn.called:
            message = self._complete(messages, [])
        return str(message["content"])

    def _call(self, turn: Turn, name: str, arguments: str) -> str:
        if name != WEB_SEARCH:
            return self._client.call_tool(name, arguments).text
        found = f"Nothing certain is known about: {json.loads(arguments)['query']}"
        result = {"tool_name": name, "output": found, "conversation_id": turn.conversation}
        self._client.keep_tool_results([result])
        return found

    def _complete(
        self, messages: list[dict[str, Any]], tools: list[dict[str, Any]]
    ) -> dict[str, Any]:
        body = {"model": "scripted", "messages": messages, "tools": tools}
        answer = self._model.post(self._model_url, json=body)
        answer.raise_for_status()
        message: dict[str, Any] = answer.json()["choices"][0]["message"]
        return message

    def _report(self, conversation: str, outcome: OutcomeName) -> None:
        """The user says how the last suggestion went."""
        self._client.record_response(
            f"The last suggestion about the build {outcome} ({conversation})",
            outcome,
            related=self._quoted,
            conversation_id=conversation,
        )

    def _learned(self, wanted: Mapping[str, int]) -> None:
        """Wait until every fact is there and findable."""
        end = time.monotonic() + LEARN_S
        while time.monotonic() < end and not all(self._copies(fact) for fact in wanted):
            time.sleep(LOOK_S)
        self._client.wait_indexed()

    def _copies(self, fact: str) -> int:
        page = self._client.items(tags=FACT_TAG, limit=200)
        return sum(1 for item in page.items if item.text == fact)


def without_helpers(diagnostics: Mapping[str, Any], model_url: str) -> str | None:
    """What to do when the service may not ask a model, as its diagnostics say it; else None."""
    models = diagnostics.get("models") or {}
    if models.get("enabled") and models.get("helpers", {}).get(LEARNER, True):
        return None
    why = f"its helper {LEARNER} is off" if models.get("enabled") else models.get("message", "off")
    return (
        f"The service learns no facts, because its model helpers are not on ({why}): end it with "
        f"`rayapp down` and start it with `RAYAPP_MODELS__BASE_URL={model_url} "
        "RAYAPP_MODELS__MODEL=scripted rayapp up`."
    )


def _schemas(client: SyncMemoryClient) -> dict[str, dict[str, Any]]:
    """The tools of the service, and one of our own."""
    found = {tool["function"]["name"]: tool for tool in client.tools().tools}
    query = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
    own = {"name": WEB_SEARCH, "description": "Search the web.", "parameters": query}
    return found | {WEB_SEARCH: {"type": "function", "function": own}}


def _judge(result: Result, wanted: Mapping[str, int]) -> None:
    """Whether the four promises hold, and what shows it."""
    later = [turn for turn in result.turns if turn.conversation != "monday"]
    recalls = [turn for turn in later if turn.asks and "build" not in turn.asks]
    missed = [turn.said for turn in recalls if not _recalled(turn, wanted)]
    fixes = [turn.used[:1] for turn in result.turns if turn.asks and "build" in turn.asks]
    gated = [turn for turn in recalls if WEB_SEARCH not in turn.allowed]
    other = {fact: copies for fact, copies in result.facts.items() if copies != 1}
    said = sum(wanted.values())
    _promise(
        result,
        "facts are kept once",
        not other and bool(result.facts),
        f"{len(result.facts)} facts of {said} statements" + (f"; copies: {other}" if other else ""),
    )
    _promise(
        result,
        "facts are recalled in later conversations",
        bool(recalls) and not missed,
        f"{len(recalls) - len(missed)} of {len(recalls)} questions"
        + "".join(f"; {m}" for m in missed),
    )
    _promise(
        result,
        "a failed answer is not offered first again",
        len(fixes) > 1 and bool(fixes[0]) and all(fix and fix != fixes[0] for fix in fixes[1:]),
        " then ".join(fix[0] if fix else "nothing" for fix in fixes),
    )
    _promise(
        result,
        "tools stay away when memory is enough",
        bool(gated) and not any(turn.called for turn in gated),
        f"{len(gated)} of {len(recalls)} answers from memory without {WEB_SEARCH}",
    )


def _recalled(turn: Turn, facts: Mapping[str, int]) -> bool:
    """The fact itself was before the model, and the answer says it."""
    return any(turn.asks in fact and fact in turn.shown for fact in facts) and bool(turn.used)


def _promise(result: Result, name: str, holds: bool, why: str) -> None:
    result.promises[name], result.why[name] = holds, why


def _show(console: Console, turn: Turn) -> None:
    console.print(f"[bold cyan]Dana:[/] {turn.said}", highlight=False)
    tools = f", called {', '.join(turn.called)}" if turn.called else ""
    console.print(
        f"[dim]{len(turn.shown)} memories, {turn.reason}, {len(turn.allowed)} tools{tools}[/]"
    )
    console.print(f"[bold green]Assistant:[/] {turn.answer}\n", highlight=False, markup=True)


def _summary(console: Console, result: Result) -> None:
    table = Table("promise", "kept", "shown by")
    for name, holds in result.promises.items():
        table.add_row(name, "[green]yes[/]" if holds else "[red]NO[/]", result.why[name])
    console.print(table)


def main() -> int:
    parser = argparse.ArgumentParser(description="A chat program with a memory.")
    parser.add_argument("--url", default="http://127.0.0.1:8000", help="the memory service")
    parser.add_argument("--model", default="http://127.0.0.1:9100/v1", help="the chat model")
    parser.add_argument("--user", default=f"dana-{uuid.uuid4().hex[:8]}", help="acts for this user")
    parser.add_argument("--out", type=Path, help="write the transcript there, as JSON")
    arguments = parser.parse_args()
    console = Console()
    with SyncMemoryClient(arguments.url, user_id=arguments.user) as client:
        try:
            advice = without_helpers(client.diagnostics(), arguments.model)
            if advice is not None:
                console.print(f"[red]{escape(advice)}[/]", highlight=False, soft_wrap=True)
                return NO_HELPERS
            chat = Chat(client, arguments.model, load_script())
            try:
                result = chat.play(console)
            finally:
                chat.close()
        except (RayappError, httpx.HTTPError) as error:
            console.print(f"[red]{error}[/]", highlight=False)
            return 1
    _summary(console, result)
    if arguments.out:
        text = json.dumps(asdict(result), ensure_ascii=False, indent=1)
        arguments.out.write_text(text + "\n", encoding="utf-8")
    return 0 if result.kept else BROKEN


if __name__ == "__main__":
    sys.exit(main())
