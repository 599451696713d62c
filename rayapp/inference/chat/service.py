"""One call of a helper: budget, breaker, time limit, ledger, reading, at most one second try."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal, TypeVar

from pydantic import BaseModel

from rayapp.core.breaker import Breaker, BreakerState
from rayapp.core.deadline import Deadline
from rayapp.core.errors import DeadlineExceeded, DependencyDown, ModelDown, RayappError
from rayapp.core.runtime import Runtime
from rayapp.core.scope import ReadScope
from rayapp.inference import ports
from rayapp.inference.chat.rules.answers import (
    Budget,
    Prices,
    Spent,
    Unreadable,
    cost_of,
    day_start,
    read_answer,
    refused_by,
)
from rayapp.inference.prompts.loader import AGAIN, Prompt, PromptBook
from rayapp.inference.rules import estimate_tokens
from rayapp.text.hostile import injection_kinds
from rayapp.text.language import detect_language
from rayapp.text.redaction import redact

T = TypeVar("T")
log = logging.getLogger("rayapp.models")

# Health looks at calls of all processes: each has a breaker of its own, and the indexer's and the
# learner's are not those of the process that answers. So far back, and so many calls; a helper is
# silent after as many useless asks in a row as open a breaker; answers that cannot be used must be
# those of two users, because one user's text alone may lead a model astray. Our choice.
SEEN = timedelta(minutes=5)
SEEN_CALLS = 200
SILENT_AFTER = 3
# Health as a whole ends after 3 s: a ledger that takes longer than this, seconds, says nothing. Nor
# does whoever leaves wait longer for it.
LEDGER_S = 1.0
# Share of what is left of a question's time that may pass before its call begins: the rest is the
# model's own, because an answer that is cut off counts against the breaker. Our choice.
BEGIN_SHARE = 0.5
# With less than that left, a second try would only be cut off.
LEAST_RETRY_S = 1.0
# Of a bad answer, what the model is shown again; the rest teaches it nothing.
SHOWN_AGAIN_CHARS = 2_000
# Of a logged answer: enough to see its form.
LOGGED_CHARS = 500
OFF = "off: set models.base_url and models.model to let helpers ask a language model"


class _NoAnswer(Exception):
    """Why there is none. `called`: the endpoint was asked, which may cost all the same."""

    def __init__(self, why: ports.WhyNot, detail: str, *, called: bool = True) -> None:
        super().__init__(detail)
        self.why = why
        self.detail = detail
        self.called = called


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    user_id: str
    helper: ports.HelperName
    prompt: Prompt
    deadline: Deadline
    ask_id: str


@dataclass(eq=False)
class ModelCalls:
    """The language model of the helpers. It never raises for what is away: a reply says why.

    Without `chat` every question is answered `off`.
    """

    chat: ports.ChatModel | None
    ledger: ports.UsageStore
    prompts: PromptBook
    _: KW_ONLY
    breaker: Breaker
    runtime: Runtime

    def __post_init__(self) -> None:
        rules = self.runtime.settings.models
        self._budget = Budget(
            calls=rules.calls_per_day, tokens=rules.tokens_per_day, cost=rules.cost_per_day
        )
        self._prices = Prices(prompt=rules.price_prompt, completion=rules.price_completion)
        self._slots = asyncio.Semaphore(rules.concurrency)
        # What calls of this process may still cost; the ledger does not know of them yet.
        self._flying: dict[str, Spent] = defaultdict(Spent)

    def enabled(self, helper: ports.HelperName) -> bool:
        """True when there is an endpoint and the helper may use it."""
        return self.chat is not None and bool(getattr(self.runtime.settings.models.helpers, helper))

    async def ask(self, user_id: str, question: ports.ModelQuestion[T]) -> ports.ModelReply[T]:
        """The answer, or why there is none. Only a defect of the caller raises (ConfigError)."""
        prompt = self.prompts.get(question.helper, question.language)
        messages = prompt.render(question.variables)
        begun = self.runtime.clock.monotonic()
        reply: ports.ModelReply[T]
        if not self.enabled(question.helper):
            reply = ports.ModelReply(why="off", detail=f"{question.helper} is off.")
        else:
            deadline = Deadline(self._limit(question), self.runtime.clock.monotonic)
            asked = _Asked(
                user_id=user_id,
                helper=question.helper,
                prompt=prompt,
                deadline=deadline,
                ask_id=self.runtime.new_id(),
            )
            reply = await self._tries(asked, question, messages)
            self.runtime.metrics.observe(
                "model_latency_s", self.runtime.clock.monotonic() - begun, helper=question.helper
            )
        self.runtime.metrics.count("model_asks", helper=question.helper, result=reply.why or "ok")
        return reply

    async def refusal(self, user_id: str, planned: Spent) -> str | None:
        """Why so much more may not be spent for the user today; None: it may. Raises StoreDown."""
        if self._budget == Budget():
            return None
        total = await self.ledger.total(ReadScope(user_id), day_start(self.runtime.clock.now()))
        spent = Spent(calls=total.calls, tokens=total.tokens, cost=total.cost)
        limit = refused_by(self._budget, spent, planned)
        if limit is None:
            return None
        return (
            f"The day's {limit} of this user are used up: wait for midnight UTC or raise "
            f"models.{limit}_per_day."
        )

    async def charge(self, row: ports.UsageRow) -> None:
        """Keep a call in the ledger, with what it cost."""
        prompt, answer = row.usage.prompt_tokens, row.usage.completion_tokens
        for kind, tokens in (("prompt", prompt), ("answer", answer)):
            self.runtime.metrics.count("model_tokens", tokens, helper=row.helper, kind=kind)
        try:
            await self.ledger.add(replace(row, cost=cost_of(prompt, answer, self._prices)))
        except RayappError as error:
            # The answer is there and paid for; only the sum of the day is too low.
            log.warning("a model call is missing in the ledger (%s)", error.code)
            self.runtime.metrics.count("model_rows_lost")

    async def usage(self, scope: ReadScope, since: datetime) -> ports.UsageTotal:
        """What the calls for this user cost since then."""
        return await self.ledger.total(scope, since)

    async def health(self) -> dict[str, Any]:
        """Off is well: nothing is missing that was asked for."""
        helpers = {name: self.enabled(name) for name in ports.HELPERS}
        if self.chat is None:
            return {"healthy": True, "enabled": False, "message": OFF, "helpers": helpers}
        shot = self.breaker.snapshot(self.runtime.clock.monotonic())
        silent = await self._silent({name for name, on in helpers.items() if on})
        message = "ok"
        if shot.state is not BreakerState.CLOSED:
            message = "The language model is away; helpers wait for it."
        elif silent:
            message = (
                f"The language model gave no usable answer to {', '.join(silent)} lately: look at "
                "its log, and at models.base_url and models.model."
            )
        return {
            "healthy": message == "ok",
            "enabled": True,
            "message": message,
            "model": self.chat.model,
            "helpers": helpers,
            "silent": silent,
            "breaker": shot.state.value,
            "lastError": shot.last_error,
        }

    async def close(self) -> None:
        """Connections of the endpoint."""
        close = getattr(self.chat, "close", None)
        if close is not None:
            await close()

    async def _silent(self, on: Collection[str]) -> list[str]:
        """Those of the helpers that are on whose last calls, in whatever process, gave nothing."""
        try:
            async with asyncio.timeout(LEDGER_S):
                calls = await self.ledger.recent(self.runtime.clock.now() - SEEN, SEEN_CALLS)
        except (RayappError, TimeoutError):
            return []  # that the ledger is away is told by the truth's own component
        by_helper: dict[str, dict[str, list[ports.CallSeen]]] = {}
        for number, call in enumerate(calls):
            if call.left:
                continue
            asks = by_helper.setdefault(call.helper, {})
            asks.setdefault(call.ask_id or str(number), []).append(call)
        return sorted(
            helper
            for helper, asks in by_helper.items()
            if helper in on and _useless(list(asks.values())[:SILENT_AFTER])
        )

    def _limit(self, question: ports.ModelQuestion[T]) -> float:
        if question.timeout_s is not None:
            return question.timeout_s
        prefix = question.helper == "contextual_prefix"
        return (
            self.runtime.settings.models.prefix_timeout_s
            if prefix
            else self.runtime.settings.models.timeout_s
        )

    async def _tries(
        self, asked: _Asked, question: ports.ModelQuestion[T], messages: Sequence[ports.Message]
    ) -> ports.ModelReply[T]:
        """One call, and one more when its answer cannot be used and time is left."""
        tokens, told, problem = 0, list(messages), ""
        for attempt in (1, 2):
            try:
                found = await self._call(asked, told, question)
            except _NoAnswer as gone:
                # A second try that failed changes nothing about the first one.
                invalid = attempt == 2
                return ports.ModelReply(
                    why="invalid" if invalid else gone.why,
                    detail=problem if invalid else gone.detail,
                    tokens=tokens,
                )
            answer, read = found
            tokens += answer.usage.prompt_tokens + answer.usage.completion_tokens
            if not isinstance(read, Unreadable):
                return ports.ModelReply(value=read, tokens=tokens)
            problem = read.reason
            if asked.deadline.remaining() < LEAST_RETRY_S:
                break
            again = AGAIN[question.language].format(reason=problem)
            told = [
                *messages,
                ports.Message("assistant", answer.text[:SHOWN_AGAIN_CHARS]),
                ports.Message("user", again),
            ]
        return ports.ModelReply(why="invalid", detail=problem, tokens=tokens)

    async def _call(
        self, asked: _Asked, messages: Sequence[ports.Message], question: ports.ModelQuestion[T]
    ) -> tuple[ports.ChatAnswer, T | Unreadable]:
        """One request with its row in the ledger. Raises _NoAnswer."""
        planned = self._plan_cost(asked.prompt, messages)
        self._flying[asked.user_id] = self._flying[asked.user_id].plus(planned)
        try:
            await self._check_budget(asked)
            await self._wait_turn(asked)
            return await self._charged(asked, messages, question)
        finally:
            left = self._flying[asked.user_id].minus(planned)
            self._flying[asked.user_id] = left
            if left.calls == 0:
                del self._flying[asked.user_id]

    async def _charged(
        self, asked: _Asked, messages: Sequence[ports.Message], question: ports.ModelQuestion[T]
    ) -> tuple[ports.ChatAnswer, T | Unreadable]:
        """The request of whoever has the turn, and its row. Raises _NoAnswer."""
        begun = self.runtime.clock.monotonic()
        try:
            answer = await self._limited(asked, messages)
        except _NoAnswer as gone:
            if gone.called:
                await self._record(asked, _lost(messages, gone.why), begun, result="none")
            raise
        except asyncio.CancelledError:
            # The model has read the question all the same.
            with suppress(TimeoutError):
                async with asyncio.timeout(LEDGER_S):
                    await self._record(asked, _lost(messages, "timeout"), begun, result="left")
            raise
        read = self._read(answer, question)
        bad = isinstance(read, Unreadable)
        await self._record(asked, answer.usage, begun, result="bad" if bad else "ok")
        return answer, read

    def _plan_cost(self, prompt: Prompt, messages: Sequence[ports.Message]) -> Spent:
        """The most that a call may cost: the whole question, and an answer as long as allowed."""
        told = sum(estimate_tokens(one.content) for one in messages)
        most = prompt.head.max_tokens
        return Spent(calls=1, tokens=told + most, cost=cost_of(told, most, self._prices))

    async def _check_budget(self, asked: _Asked) -> None:
        """Calls in flight are read before the ledger, so that none falls between the two."""
        flying = self._flying[asked.user_id]
        try:
            refusal = await self.refusal(asked.user_id, flying)
        except RayappError as error:
            # Without the ledger nobody knows what was spent: do not spend more.
            raise _NoAnswer("ledger", f"The ledger is away ({error.code}); retry later.") from error
        if refusal is not None:
            raise _NoAnswer("budget", refusal)

    async def _wait_turn(self, asked: _Asked) -> None:
        """Take one of the calls that may run at once. Raises _NoAnswer."""
        left = asked.deadline.remaining()
        if left <= 0:
            raise _NoAnswer("timeout", "No time was left for the call.", called=False)
        try:
            async with asyncio.timeout(BEGIN_SHARE * left):
                await self._slots.acquire()
        except TimeoutError as error:
            busy = "All calls are in use: raise models.concurrency."
            raise _NoAnswer("timeout", busy, called=False) from error

    async def _limited(self, asked: _Asked, messages: Sequence[ports.Message]) -> ports.ChatAnswer:
        """Within the breaker and what is left of the time; gives the turn back. Raises _NoAnswer,
        and CancelledError only when the model was called."""
        try:
            return await self.breaker.call(
                lambda: self._complete(asked, messages), self.runtime.clock.monotonic, ModelDown
            )
        except TimeoutError as error:
            raise _NoAnswer("timeout", str(error)) from error
        except DependencyDown as error:
            if error.code == "breaker_open":
                raise _NoAnswer("breaker", error.message, called=False) from error
            raise _NoAnswer("broken", error.message) from error
        except RayappError as error:
            raise _NoAnswer("broken", error.message) from error
        finally:
            self._slots.release()

    async def _complete(self, asked: _Asked, messages: Sequence[ports.Message]) -> ports.ChatAnswer:
        assert self.chat is not None
        left = asked.deadline.remaining()
        request = ports.ChatRequest(
            messages=messages,
            max_tokens=asked.prompt.head.max_tokens,
            temperature=asked.prompt.head.temperature,
            timeout_s=left,
            json_schema=asked.prompt.json_schema,
        )
        try:
            # The model keeps its limit itself; this one holds even if it does not.
            async with asyncio.timeout(left):
                return await self.chat.complete(request)
        except DeadlineExceeded as error:
            # For the breaker a model that is too slow is one that is away.
            raise TimeoutError(error.message) from error

    def _read(self, answer: ports.ChatAnswer, question: ports.ModelQuestion[T]) -> T | Unreadable:
        self._log_raw(answer, question.helper)
        read = read_answer(answer.text, question.answer, cut=answer.finish == "length")
        if isinstance(read, Unreadable):
            return read
        words = read.model_dump_json() if isinstance(read, BaseModel) else str(read)
        commands = injection_kinds(words)
        if commands:
            # It would be stored and put before a model again.
            return Unreadable(f"The answer commands its reader ({', '.join(commands)}).")
        if isinstance(read, str) and _foreign(read, question.variables):
            return Unreadable("The answer is in another language than the text.")
        return read

    def _log_raw(self, answer: ports.ChatAnswer, helper: str) -> None:
        if self.runtime.random() < self.runtime.settings.models.raw_log_share:
            text = redact(answer.text).text[:LOGGED_CHARS]
            log.info("raw answer for %s (%s): %s", helper, answer.finish, text)

    async def _record(
        self,
        asked: _Asked,
        usage: ports.ChatUsage,
        begun: float,
        *,
        result: Literal["ok", "bad", "none", "left"],
    ) -> None:
        assert self.chat is not None
        row = ports.UsageRow(
            user_id=asked.user_id,
            helper=asked.helper,
            model=self.chat.model,
            prompt_version=asked.prompt.version,
            at=self.runtime.clock.now(),
            usage=usage,
            ok=result == "ok",
            duration_ms=round((self.runtime.clock.monotonic() - begun) * 1000, 3),
            ask_id=asked.ask_id,
            answered=result in ("ok", "bad"),
            left=result == "left",
        )
        await self.charge(row)


def _useless(asks: Sequence[Sequence[ports.CallSeen]]) -> bool:
    """Whether the last asks gave nothing, and not because of what one user's text says."""
    calls = [call for tries in asks for call in tries]
    if len(asks) < SILENT_AFTER or any(call.ok for call in calls):
        return False
    away = all(any(not call.answered for call in tries) for tries in asks)
    return away or len({call.user_id for call in calls}) > 1


def _lost(messages: Sequence[ports.Message], why: ports.WhyNot) -> ports.ChatUsage:
    """What a call without an answer cost: one that timed out was read, and is charged."""
    told = sum(estimate_tokens(one.content) for one in messages) if why == "timeout" else 0
    return ports.ChatUsage(prompt_tokens=told, estimated=True)


def _foreign(answer: str, variables: Mapping[str, Any]) -> bool:
    """True for an answer in a script that no text of the question is in."""
    if detect_language(answer) != "other" or not any(letter.isalpha() for letter in answer):
        return False
    return not any(
        any(letter.isalpha() for letter in text) and detect_language(text) == "other"
        for text in _texts(variables.values())
    )


def _texts(values: Iterable[Any]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, ports.Message):
            yield value.content
        elif isinstance(value, list | tuple):
            yield from _texts(value)
