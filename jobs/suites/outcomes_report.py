"""The outcomes suite as JSON values, Markdown and terminal tables."""

from dataclasses import replace
from typing import Any

from rich.table import Table

from jobs.suites import report as plain
from jobs.suites.outcomes import JUDGED_LEVEL, LEVELS, FormRun, OutcomesRun
from jobs.suites.rows import Row
from jobs.suites.runner import SuiteRun
from rayapp.local.cli.output import markdown_table, number_table

HEAD = ("form", "outcomes each", "good first, of all", "of candidates", "scenarios", "candidates")
CHANGES = ("before", "after", "change")


def report(run: OutcomesRun) -> dict[str, Any]:
    """The JSON section: shares per level, LoCoMo before and after, sabotage, every rank."""
    return {
        "suite": "outcomes",
        "forms": [_form(form) for form in run.forms],
        "same_store": _loss(run),
        "rejected": run.rejected,
        "sabotage": {
            "tried": run.sabotage.tried,
            "refused": run.sabotage.refused,
            "flipped": run.sabotage.flipped,
        },
        "locomo_before": plain.report(run.before) if run.before else None,
        "locomo_after": plain.report(run.after) if run.after else None,
    }


def tables(run: OutcomesRun) -> list[Table]:
    """Terminal tables: learning by level, and what it cost."""
    cost = "LoCoMo in the same store, before and after"
    return [
        number_table("outcomes: good before bad", HEAD, _rows(run)),
        number_table(cost, ("metric", *CHANGES), _changes(run)),
    ]


def markdown(run: OutcomesRun) -> str:
    lines = ["## outcomes", "", line(run), "", *markdown_table(HEAD, _rows(run))]
    head = ("LoCoMo in the same store", *CHANGES)
    lines += ["", *markdown_table(head, _changes(run))]
    return "\n".join(lines) + "\n"


def rows(run: OutcomesRun) -> list[Row]:
    """Whether the good memory is first after a few outcomes; LoCoMo as it is afterwards."""
    rows = [
        Row(
            part=form.form,
            question_id=one.scenario_id,
            category=form.form,
            lang=one.lang,
            values={f"good first, {one.level} outcomes": float(one.good_first)},
        )
        for form in run.forms
        for one in form.placed
        if one.level == JUDGED_LEVEL
    ]
    after = plain.rows(run.after) if run.after is not None else []
    return rows + [replace(row, part=f"LoCoMo after, {row.part}") for row in after]


def line(run: OutcomesRun) -> str:
    """One sentence with what must not happen."""
    stored = sum(form.stored for form in run.forms)
    kept = sum(form.kept for form in run.forms)
    archived = sum(form.archived for form in run.forms)
    lost = run.sabotage
    return (
        f"{kept} of {stored} memories are kept, {archived} of them archived by a rule, "
        f"{len(run.rejected)} were refused; "
        f"{lost.refused} of {lost.tried} false outcomes of another user were refused, "
        f"{lost.flipped} orders flipped."
    )


def _rows(run: OutcomesRun) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for form in run.forms:
        for level in LEVELS:
            of_all, of_candidates, count, candidates = form.share(level)
            shares = (f"{of_all:.3f}", f"{of_candidates:.3f}")
            rows.append((form.form, str(level), *shares, str(count), str(candidates)))
    return rows


def _changes(run: OutcomesRun) -> list[tuple[str, ...]]:
    return [
        (metric, f"{v['before']:.4f}", f"{v['after']:.4f}", f"{v['change']:+.4f}")
        for metric, v in _loss(run).items()
    ]


def _form(form: FormRun) -> dict[str, Any]:
    levels = {}
    for level in LEVELS:
        of_all, of_candidates, count, candidates = form.share(level)
        levels[str(level)] = {
            "good_first_of_all": round(of_all, 4),
            "good_first_of_candidates": round(of_candidates, 4),
            "scenarios": count,
            "candidates": candidates,
        }
    return {
        "form": form.form,
        "stored": form.stored,
        "kept": form.kept,
        "archived": form.archived,
        "levels": levels,
        "per_scenario": [
            {
                "id": one.scenario_id,
                "lang": one.lang,
                "outcomes": one.level,
                "good": one.good,
                "bad": one.bad,
            }
            for one in form.placed
        ],
    }


def _loss(run: OutcomesRun) -> dict[str, dict[str, float]]:
    if run.before is None or run.after is None:
        return {}
    before, after = _headline(run.before), _headline(run.after)
    return {
        metric: {
            "before": round(before[metric], 4),
            "after": round(after[metric], 4),
            "change": round(after[metric] - before[metric], 4),
        }
        for metric in before
    }


def _headline(run: SuiteRun) -> dict[str, float]:
    """The service's headline row (categories 1 to 4)."""
    _, _, summary = next(row for row in plain.summary_rows(run) if row[1] == "service")
    return {metric: value.mean for metric, value in summary.items()}
