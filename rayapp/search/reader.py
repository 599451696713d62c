"""A language model reads whether the best hits answer the question (decision 0054).

Words and vectors say how near a text is, not whether it answers. A request that sets `read` lets a
model look at what would be shown; where it finds no answer the search abstains.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from rayapp.core.deadline import Deadline
from rayapp.core.errors import ModelDown
from rayapp.core.scope import ReadScope
from rayapp.inference.chat.rules.answers import AnswerReading
from rayapp.inference.ports import ModelPort, ModelQuestion, Reranker, prompt_language
from rayapp.search.requests import SearchAnswer
from rayapp.search.tracing import Trace

# Hits that the model reads, and characters of each: a page of passages. Our choice.
READ_HITS = 10
READ_CHARS = 1_000
REASON = "reader"  # in `degraded`, where nobody could read


@dataclass(frozen=True, slots=True)
class HitReaders:
    """Who reads the texts of the best hits: the reranker always, a language model on request."""

    reranker: Reranker
    answers: AnswerReader


@dataclass(frozen=True, slots=True)
class AnswerReader:
    """Asks the model. One that is off, away or late changes nothing but `degraded`."""

    models: ModelPort
    timeout_s: float

    async def read(
        self,
        scope: ReadScope,
        question: str,
        answer: SearchAnswer,
        deadline: Deadline,
        trace: Trace,
    ) -> SearchAnswer:
        """`answer` as it is with the answering hit named, or abstained when none answers."""
        texts = [hit.text[:READ_CHARS] for hit in answer.hits[:READ_HITS]]
        if not texts:
            return answer
        async with trace.stage("read"):
            reply = await self.models.ask(
                scope.user_id,
                ModelQuestion(
                    helper="answer_reading",
                    variables={"question": question, "texts": texts},
                    answer=AnswerReading,
                    language=prompt_language(question),
                    timeout_s=deadline.limit(self.timeout_s),
                ),
            )
        found = reply.value
        if found is None or found.text > len(texts):
            why = reply.detail or "The model named a text that it was not shown."
            trace.degrade(REASON, "read", ModelDown(why))
            return answer
        if found.text:
            return replace(
                answer, confidence="high", answered_by=answer.hits[found.text - 1].position
            )
        return replace(
            answer,
            hits=(),
            abstained=True,
            confidence="low",
            best_rejected=answer.hits[0].summary.final_score,
            next_offset=None,
        )
