"""Episodes, thoughts, what waits for a person, and hints."""

from rayapp.api.auth import EPISODES, REVIEW, SUMMARIES, THOUGHTS
from rayapp.api.paths import DerivedId, ReviewKind
from rayapp.api.responses import raises
from rayapp.api.route import CurrentCall, InQuery, router, writes
from rayapp.core import errors
from rayapp.understanding.derived.reading import SHOWN
from rayapp.understanding.derived.records import DerivedKind, State
from rayapp.wire import derived as wire

routes = router("understanding")
SUMMARY, SUMMARY_ALIAS = SUMMARIES


@routes.get(EPISODES, summary="List episodes")
async def episodes(call: CurrentCall, query: InQuery[wire.EpisodesQuery]) -> wire.EpisodesAnswer:
    """Scenes of a life, the newest first."""
    found = await call.services.derived.episodes(
        call.reads, since=query.since, until=query.until, limit=query.limit, **query.whose()
    )
    return wire.EpisodesAnswer.from_rows(found)


@routes.post(
    EPISODES,
    summary="Tell an episode",
    **writes(errors.NotFound, errors.TooLarge, errors.Conflict, errors.DuplicateMemory),
)
async def create_episode(call: CurrentCall, body: wire.EpisodeBody) -> wire.EpisodeAnswer:
    """It goes with the memory that tells it. 409 `understanding_off`: understanding is off for
    this tenant."""
    made = await call.services.derived.create_episode(call.writes, body.new())
    return wire.EpisodeAnswer.from_row(made)


@routes.get(f"{EPISODES}/{{derived_id}}", summary="One episode", responses=raises(errors.NotFound))
async def episode(call: CurrentCall, derived_id: DerivedId) -> wire.EpisodeAnswer:
    found = await call.services.derived.get(call.reads, DerivedKind.EPISODE, derived_id)
    return wire.EpisodeAnswer.from_row(found.row)


@routes.get(THOUGHTS, summary="List thoughts")
async def thoughts(call: CurrentCall, query: InQuery[wire.ThoughtsQuery]) -> wire.ThoughtsAnswer:
    """What several memories on several days say together."""
    types = None if query.subject_type is None else (query.subject_type,)
    states = SHOWN if query.state is None else (State(query.state),)
    found = await call.services.derived.thoughts(
        call.reads, states=states, types=types, limit=query.limit, **query.whose()
    )
    return wire.ThoughtsAnswer.from_weighed(found)


@routes.get(f"{THOUGHTS}/{{derived_id}}", summary="One thought", responses=raises(errors.NotFound))
async def thought(call: CurrentCall, derived_id: DerivedId) -> wire.ThoughtAnswer:
    """With the memories that it rests on, and what it was before."""
    found = await call.services.derived.get(call.reads, DerivedKind.THOUGHT, derived_id)
    return wire.ThoughtAnswer.from_weighed(found)


@routes.get(REVIEW, summary="What waits for a person", responses=raises(errors.NotFound))
async def review(call: CurrentCall, query: InQuery[wire.ReviewQuery]) -> wire.ReviewAnswer:
    """What was not said outright, and so is told to nobody until somebody accepts it."""
    service = call.services.review
    found = await service.listed(call.reads, query.kind, State(query.state), query.limit)
    return wire.ReviewAnswer(
        waiting=await service.waiting(call.reads),
        items=tuple(map(wire.ReviewItemView.from_item, found)),
    )


@routes.post(
    f"{REVIEW}/{{kind}}/{{derived_id}}",
    summary="Accept, edit, decline or undo",
    **writes(errors.NotFound, errors.Conflict, errors.Forbidden),
)
async def decide(
    call: CurrentCall, kind: ReviewKind, derived_id: DerivedId, body: wire.DecisionBody
) -> wire.DecisionAnswer:
    """What is declined does not come back. 409 `nothing_to_undo`, `sources_gone`."""
    decided = body.decided(operator="admin" in call.who.scopes)
    found = await call.services.review.decide(call.writes, kind, derived_id, decided)
    return wire.DecisionAnswer(item=wire.ReviewItemView.from_item(found))


@routes.get(SUMMARY, summary="Hints about a user")
async def summary(call: CurrentCall, query: InQuery[wire.SummaryQuery]) -> wire.SummaryAnswer:
    """Traits, goals, topics, patterns and episodes that help with a question. What waits for a
    person, or is in doubt, is never among them."""
    found = await call.services.hints.hints(call.reads, query.request())
    return wire.SummaryAnswer.from_hints(found, query)


@routes.post(SUMMARY, summary="Hints about a user, for a question")
async def summarize(call: CurrentCall, body: wire.SummaryBody) -> wire.SummaryAnswer:
    """The same, with the question in the body."""
    found = await call.services.hints.hints(call.reads, body.request())
    return wire.SummaryAnswer.from_hints(found, body)


@routes.post(SUMMARY_ALIAS, summary="Hints about a user, by a shorter path")
async def summarize_alias(call: CurrentCall, body: wire.SummaryBody) -> wire.SummaryAnswer:
    """As `POST /api/memory/summary`."""
    return await summarize(call, body)
