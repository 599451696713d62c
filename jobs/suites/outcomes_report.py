"""The outcomes suite as JSON values, Markdown and terminal tables."""

from dataclasses import replace
from typing import Any

from rich.table import Table

from jobs.suites.outcomes import JUDGED_LEVEL, LEVELS, FormRun, OutcomesRun
from jobs.suites.report import suite_report, summary_rows
from jobs.suites.rows import Row, suite_rows
from jobs.suites.runner import SuiteRun

HEAD = ("form", "outcomes each", "good first, of all", "of candidates", "scenarios", "candidates")


def outcomes_report(run: OutcomesRun) -> dict[str, Any]:
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
        "locomo_before": suite_report(run.before) if run.before else None,
        "locomo_after": suite_report(run.after) if run.after else None,
    }


def outcomes_tables(run: OutcomesRun) -> list[Table]:
    """Terminal tables: learning by level, and what it cost."""
    learned = Table(title="outcomes: good before bad", title_justify="left")
    for name in HEAD:
        learned.add_column(name, justify="left" if name == "form" else "right")
    for row in _rows(run):
        learned.add_row(*row)
    cost = Table(title="LoCoMo in the same store, before and after", title_justify="left")
    for name in ("metric", "before", "after", "change"):
        cost.add_column(name, justify="left" if name == "metric" else "right")
    for metric, values in _loss(run).items():
        cost.add_row(
            metric,
            *(
                f"{values[key]:+.4f}" if key == "change" else f"{values[key]:.4f}"
                for key in ("before", "after", "change")
            ),
        )
    return [learned, cost]


def outcomes_markdown(run: OutcomesRun) -> str:
    """The same tables as Markdown."""
    lines = ["## outcomes", "", outcomes_line(run), ""]
    lines += ["| " + " | ".join(HEAD) + " |", "|---|" + "---:|" * (len(HEAD) - 1)]
    lines += ["| " + " | ".join(row) + " |" for row in _rows(run)]
    lines += ["", "| LoCoMo in the same store | before | after | change |", "|---|---:|---:|---:|"]
    for metric, v in _loss(run).items():
        cells = f"{v['before']:.4f} | {v['after']:.4f} | {v['change']:+.4f}"
        lines.append(f"| {metric} | {cells} |")
    return "\n".join(lines) + "\n"


def outcomes_rows(run: OutcomesRun) -> list[Row]:
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
    after = suite_rows(run.after) if run.after is not None else []
    return rows + [replace(row, part=f"LoCoMo after, {row.part}") for row in after]


def outcomes_line(run: OutcomesRun) -> str:
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
    _, _, summary = next(row for row in summary_rows(run) if row[1] == "service")
    return {metric: value.mean for metric, value in summary.items()}
