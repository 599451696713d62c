"""One run as JSON values, Markdown text and terminal tables. Ids and ranks, never a text."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.table import Table

from jobs.suites.rows import Row, measures
from jobs.suites.runner import Answered, SuiteRun
from rayapp.local.cli.output import markdown_table, number_table
from rayapp.search.rules.evaluation import (
    METRICS,
    TOP,
    Estimate,
    Judged,
    Summary,
    percentile,
    rank_groups,
    recall_at,
    summarise,
    summarise_by,
)

Summed = tuple[str, str, Summary]
# Labels of confidence that answers below the named least one carry.
BELOW: Mapping[str, frozenset[str]] = {
    "medium": frozenset({"low"}),
    "high": frozenset({"low", "medium"}),
}
HEAD = ("set", "system", "n", *METRICS)
# What the questions are grouped by.
KEYS: Mapping[str, Callable[[Judged], str]] = {
    "category": lambda one: one.category,
    "lang": lambda one: one.lang,
}


def report(run: SuiteRun) -> dict[str, Any]:
    """The JSON section of one suite: counts, summaries with intervals, per-question ranks."""
    suite = run.suite
    return {
        "suite": suite.name,
        "documents": suite.documents,
        "stored": run.stored,
        "duplicates": run.duplicates,
        "rejected": run.rejected,
        "questions": len(run.answered),
        "excluded": suite.excluded,
        "errors": dict(Counter(one.error for one in run.answered if one.error is not None)),
        "degraded": dict(Counter(name for one in run.answered for name in one.degraded)),
        "search_ms": latency(run.answered),
        "abstention": _abstention(run),
        "summaries": [
            {
                "set": name,
                "system": system,
                "metrics": {metric: values_of(value) for metric, value in summary.items()},
            }
            for name, system, summary in summary_rows(run)
        ],
        "per_question": [_question(one) for one in run.answered],
    }


def summary_rows(run: SuiteRun) -> list[Summed]:
    """(set, system, summary): headline, all, groups, categories, languages; the floor beside."""
    service = [one.question.judged(one.ranked) for one in run.answerable]
    floor = [one.question.judged(one.floor) for one in run.answerable]
    rows: list[Summed] = []
    for name, chosen in _sets(run, service).items():
        ids = {one.question_id for one in chosen}
        beside = [one for one in floor if one.question_id in ids]
        rows += [(name, "service", summarise(chosen)), (name, "BM25", summarise(beside))]
    group_of = run.suite.group_of
    if group_of is not None and service:
        name = run.suite.group_name
        rows.append((name, "service", summarise([rank_groups(one, group_of) for one in service])))
        rows.append((name, "BM25", summarise([rank_groups(one, group_of) for one in floor])))
    for key, read in KEYS.items():
        by_service, by_floor = summarise_by(service, read), summarise_by(floor, read)
        if len(by_service) > 1:
            for group, summary in by_service.items():
                rows.append((f"{key} {group}", "service", summary))
                rows.append((f"{key} {group}", "BM25", by_floor[group]))
    return rows


def rows(run: SuiteRun) -> list[Row]:
    """The rows of stored documents and questions: by ranks, by groups, and by confidence."""
    rows = []
    for one in run.answered:
        if one.question.gold:
            rows.append(_rank(run, one))
            if run.suite.group_of is not None:
                rows.append(_group(run, one))
        if run.unanswerable:
            rows.append(_confident(one))
    return rows


def tables(run: SuiteRun) -> list[Table]:
    title = f"{run.suite.name}: mean ± half of the 95 % interval"
    table = number_table(title, HEAD, words=2)
    for name, system, summary in summary_rows(run):
        style = "" if system == "service" else "dim"
        table.add_row(name, system, str(_count(summary)), *_short(summary), style=style)
    return [table]


def markdown(run: SuiteRun) -> str:
    """The same table as Markdown, with the counts and the latency above it."""
    lines = [f"## {run.suite.name}", "", line(run), "", *markdown_rows(run)]
    if (share := _abstention(run)) is not None:
        lines += [
            "",
            f"Unanswerable questions abstained: {share['unanswerable_abstained']:.3f} of "
            f"{share['unanswerable']}; answerable ones refused: {share['answerable_refused']:.3f}.",
        ]
    return "\n".join(lines) + "\n"


def markdown_rows(run: SuiteRun) -> list[str]:
    """The table of `tables` as Markdown lines."""
    rows = [
        (name, system, str(_count(summary)), *_cells(summary))
        for name, system, summary in summary_rows(run)
    ]
    return markdown_table(HEAD, rows, words=2)


def line(run: SuiteRun) -> str:
    """One sentence with what was stored and asked."""
    times = latency(run.answered)
    speed = f", search p50 {times['p50']} ms, p95 {times['p95']} ms" if times else ""
    return (
        f"{run.suite.documents} memories ({run.stored} stored, {run.duplicates} duplicates, "
        f"{len(run.rejected)} rejected), {len(run.answered)} questions "
        f"({run.suite.excluded} excluded without valid evidence){speed}."
    )


def _sets(run: SuiteRun, service: Sequence[Judged]) -> dict[str, list[Judged]]:
    headline = run.suite.headline
    if headline is None:
        return {"all": list(service)} if service else {}
    chosen = [one for one in service if one.category in headline]
    sets = {run.suite.headline_name: chosen, "all": list(service)}
    return {name: judged for name, judged in sets.items() if judged}


def latency(answered: Sequence[Answered]) -> dict[str, float] | None:
    """Milliseconds per search, by the client and (`server_`) inside the service."""
    answers = [one for one in answered if one.error is None]
    if not answers:
        return None
    found = _percentiles([one.elapsed_ms for one in answers], "")
    inside = [one.server_ms for one in answers if one.server_ms is not None]
    return found | (_percentiles(inside, "server_") if inside else {})


def _percentiles(times: Sequence[float], prefix: str) -> dict[str, float]:
    shares = {"p50": 0.5, "p95": 0.95}
    return {prefix + name: round(percentile(times, share), 1) for name, share in shares.items()}


def _abstention(run: SuiteRun) -> dict[str, Any] | None:
    """Shares of abstained answers where the set has questions without an answer."""
    without, with_answer = run.unanswerable, run.answerable
    if not without or not with_answer:
        return None
    return {
        "unanswerable": len(without),
        "unanswerable_abstained": sum(one.abstained for one in without) / len(without),
        "answerable": len(with_answer),
        "answerable_refused": sum(one.abstained for one in with_answer) / len(with_answer),
    }


def _question(one: Answered) -> dict[str, Any]:
    row: dict[str, Any] = {
        "id": one.question.question_id,
        "corpus": one.corpus,
        "category": one.question.category,
        "lang": one.question.lang,
        "gold": list(one.question.gold),
        "top": list(one.ranked[:10]),
        "elapsed_ms": round(one.elapsed_ms, 2),
        "abstained": one.abstained,
        "confidence": one.confidence,
        "error": one.error,
    }
    if one.question.gold:
        row["ranks"] = list(one.question.judged(one.ranked).gold_ranks)
        row["floor_ranks"] = list(one.question.judged(one.floor).gold_ranks)
    return row


def values_of(value: Estimate) -> dict[str, float]:
    """A mean with its bounds as JSON."""
    return {
        "mean": round(value.mean, 4),
        "low": round(value.low, 4),
        "high": round(value.high, 4),
        "n": value.n,
    }


def _cells(summary: Summary) -> list[str]:
    return [f"{v.mean:.3f} ({v.low:.3f}-{v.high:.3f})" for v in summary.values()]


def _short(summary: Summary) -> list[str]:
    """Narrow cells for a terminal; the reports carry both bounds."""
    return [f"{v.mean:.3f} ±{(v.high - v.low) / 2.0:.2f}" for v in summary.values()]


def _count(summary: Summary) -> int:
    return next(iter(summary.values())).n


def _rank(run: SuiteRun, one: Answered) -> Row:
    suite, category = run.suite, one.question.category
    ranks = one.question.judged(one.ranked).gold_ranks
    inside = suite.headline is None or category in suite.headline
    return Row(
        part=suite.headline_name if inside else f"category {category}",
        question_id=one.question.question_id,
        category=category,
        lang=one.question.lang,
        ranks=ranks,
        values=measures(ranks),
        floor=measures(one.question.judged(one.floor).gold_ranks),
    )


def _group(run: SuiteRun, one: Answered) -> Row:
    group_of = run.suite.group_of
    assert group_of is not None
    service, floor = (
        recall_at(rank_groups(one.question.judged(ranked), group_of), TOP)
        for ranked in (one.ranked, one.floor)
    )
    return Row(
        part=run.suite.group_name,
        question_id=one.question.question_id,
        category=one.question.category,
        lang=one.question.lang,
        values={"R@10": service},
        floor={"R@10": floor},
    )


def _confident(one: Answered) -> Row:
    """Whether asking for a least confidence would have done right by this question."""
    answerable = bool(one.question.gold)
    values = {}
    for least, labels in BELOW.items():
        abstains = one.abstained or one.confidence in labels
        values[f"{'kept' if answerable else 'abstains'} at {least}"] = float(abstains != answerable)
    return Row(
        part="answerable" if answerable else "unanswerable",
        question_id=one.question.question_id,
        category=one.question.category,
        lang=one.question.lang,
        values=values,
    )
