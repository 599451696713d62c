"""Client calls about episodes, thoughts, what waits for a person, and hints."""

from datetime import datetime
from typing import Any, Literal, Unpack

from rayapp.client.calls import Reader, Talk, Writer, asked, at, call, given
from rayapp.client.core import Core
from rayapp.wire import derived

EPISODES, THOUGHTS = "/api/memory/episodes", "/api/memory/thoughts"
REVIEW, SUMMARY = "/api/review", "/api/memory/summary"
DecisionName = Literal["accept", "edit", "decline", "undo"]


class DerivedCalls(Core):
    """The calls."""

    @call
    def episodes(
        self,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        subject_id: str | None = None,
        perspective_owner_id: str | None = None,
        node_id: str | None = None,
        limit: int | None = None,
        **who: Unpack[Reader],
    ) -> Talk[tuple[derived.EpisodeView, ...]]:
        """Scenes of a life, the newest first."""
        path = asked(
            EPISODES,
            since=None if since is None else since.isoformat(),
            until=None if until is None else until.isoformat(),
            subject_id=subject_id,
            perspective_owner_id=perspective_owner_id,
            node_id=node_id,
            limit=limit,
        )
        return (yield from self.reading(derived.EpisodesAnswer, path, **who)).episodes

    @call
    def episode(self, episode_id: str, **who: Unpack[Reader]) -> Talk[derived.EpisodeAnswer]:
        """One, with what it rests on. Raises NotFound."""
        return self.reading(derived.EpisodeAnswer, at(EPISODES, episode_id), **who)

    @call
    def add_episode(
        self, /, *, user_id: str | None = None, **episode: Any
    ) -> Talk[derived.EpisodeAnswer]:
        """Tell a scene; `episode`: narrative or raw_data_id, title, occurred_at and the other body
        fields. Raises NotFound: no such memory; Conflict, code `understanding_off`."""
        return self.writing(derived.EpisodeAnswer, EPISODES, given(episode), user_id=user_id)

    @call
    def thoughts(
        self,
        *,
        state: str | None = None,
        subject_type: str | None = None,
        subject_id: str | None = None,
        perspective_owner_id: str | None = None,
        node_id: str | None = None,
        limit: int | None = None,
        **who: Unpack[Reader],
    ) -> Talk[tuple[derived.ThoughtView, ...]]:
        """What several memories say together, in the order of time."""
        path = asked(
            THOUGHTS,
            state=state,
            subject_type=subject_type,
            subject_id=subject_id,
            perspective_owner_id=perspective_owner_id,
            node_id=node_id,
            limit=limit,
        )
        return (yield from self.reading(derived.ThoughtsAnswer, path, **who)).thoughts

    @call
    def thought(self, thought_id: str, **who: Unpack[Reader]) -> Talk[derived.ThoughtAnswer]:
        """One, with what it rests on. Raises NotFound."""
        return self.reading(derived.ThoughtAnswer, at(THOUGHTS, thought_id), **who)

    @call
    def review(
        self,
        kind: str | None = None,
        *,
        state: str | None = None,
        limit: int | None = None,
        **who: Unpack[Reader],
    ) -> Talk[derived.ReviewAnswer]:
        """What waits for a person. Raises NotFound: no such kind."""
        path = asked(REVIEW, kind=kind, state=state, limit=limit)
        return self.reading(derived.ReviewAnswer, path, **who)

    @call
    def decide_review(
        self,
        kind: str,
        item_id: str,
        decision: DecisionName,
        *,
        title: str | None = None,
        text: str | None = None,
        **who: Unpack[Writer],
    ) -> Talk[derived.DecisionAnswer]:
        """Accept, edit, decline or undo. Raises NotFound; Conflict: nothing to undo."""
        body = given({"decision": decision, "title": title, "text": text})
        return self.writing(derived.DecisionAnswer, at(REVIEW, kind, item_id), body, **who)

    @call
    def memory_summary(
        self, /, *, user_id: str | None = None, **asked_for: Any
    ) -> Talk[derived.SummaryAnswer]:
        """Hints about the user; `asked_for`: query, kinds, detail and the other body fields."""
        return self.reading(derived.SummaryAnswer, SUMMARY, given(asked_for), user_id=user_id)
