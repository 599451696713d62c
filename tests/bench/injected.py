"""What of a search reaches the assistant, with and without the floor of relevance, in one run.

    python -m tests.bench.injected --data DIR --out injected.json

Ranks every question as the service does, in process (`jobs.suites.lab`, the default recipe, the
reranker of features), and packs the hits into a context block of the usual budget: as many as the
question asks for, or what of `CONTEXT_HITS` reaches the floor. Prints per set, without and with it:
evidence in the block (share), tokens of the block, lines, the share of lines that are evidence, and
how often nothing is injected. Questions without an answer have no evidence: for them fewer tokens
are better. Exit codes: 0 done, 2 bad arguments.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from jobs.calibrate import Bench, load_pairs, open_bench, settings_of
from jobs.ending import DONE, command_parser, run_command
from jobs.suites.beam import load_beam
from jobs.suites.gateway import Gateway
from jobs.suites.heq import load_heq
from jobs.suites.lab import Asked
from jobs.suites.locomo import HEADLINE, load_locomo
from jobs.suites.outputs import put_json
from rayapp.assistant.context.rules.prompt_block import Limits, Material, SectionItem, build_block
from rayapp.assistant.context.service import floor_of
from rayapp.container import bootstrap
from rayapp.core.settings.load import CONFIG_DIR
from rayapp.core.settings.model import ContextSettings
from rayapp.local.cli.output import table_of
from rayapp.search.requests import Hit
from rayapp.search.rules.confidence import calibrated, judged
from rayapp.search.rules.query import estimate_context_limit
from rayapp.search.rules.recipes import Recipe
from rayapp.search.rules.relevance_floor import above_floor
from rayapp.search.service import CONTEXT_HITS
from rayapp.storage.files import load_calibration

SETTINGS = ContextSettings()

COLUMNS = ("evidence", "tokens", "lines", "precision", "nothing")


@dataclass(frozen=True, slots=True)
class Injected:
    """One question: what its block holds. `gold` 0 = nothing answers it."""

    part: str
    gold: int
    found: int
    tokens: int
    lines: int


def part_of(source: str, asked: Asked) -> str:
    """The sets of the report."""
    category = asked.question.category
    if source == "locomo":
        return "LoCoMo 1-4" if category in HEADLINE else "LoCoMo adversarial"
    answered = "answered" if asked.question.gold else "no answer"
    return f"{source} {answered}"


def hits_of(bench: Bench, asked: Asked, recipe: Recipe) -> tuple[tuple[Hit, ...], float]:
    """What a context looks at, as the service ranks, and how sure its best hit is."""
    text = asked.question.text
    ranked = asked.ranked(recipe, bench.langs)
    if not ranked:
        return (), 0.0
    ranked = bench.rereader.order(text, ranked, recipe)
    page = ranked[: max(estimate_context_limit(text), CONTEXT_HITS)]
    hits = (
        Hit(position=at, item=one.item, summary=one.summary, passage=one.passage)
        for at, one in enumerate(page, start=1)
    )
    return tuple(hits), judged(text, ranked[0], recipe.confidence)


def injected(part: str, asked: Asked, hits: Sequence[Hit]) -> Injected:
    found = [SectionItem("relevant", hit.item, hit.text) for hit in hits]
    block = build_block(Material(found=found), Limits(budget=SETTINGS.token_budget))
    shown = {line.memory_id for line in block.lines}
    gold = set(asked.question.gold)
    return Injected(part, len(gold), len(gold & shown), block.tokens, len(shown))


def measured(data: Path, settings: ContextSettings) -> Iterator[tuple[Injected, Injected]]:
    """Each question without and with the floor."""
    sources = {
        "LoCoMo": ("locomo", load_locomo(data).corpora),
        "HeQ": ("HeQ", load_heq(data).corpora),
        "BEAM": ("BEAM", load_beam(data).corpora),
        "ours": ("ours", [load_pairs()]),
    }
    with Gateway(settings_of(None)) as gateway:
        model = gateway.info().model
        calibration = load_calibration(CONFIG_DIR / "calibration", model)
        recipe = calibrated(bootstrap.load_texts().recipes, calibration, model).recipes["default"]
        for name, corpora in sources.values():
            bench = open_bench({name: list(corpora)}, gateway)
            for asked in bench.labs[name].ask(recipe):
                part, (hits, sure) = part_of(name, asked), hits_of(bench, asked, recipe)
                limit = estimate_context_limit(asked.question.text)
                floor = floor_of(settings, limit, named=False)
                kept = above_floor(hits, floor, relevance=sure, least=recipe.confidence.floor)
                yield injected(part, asked, hits[:limit]), injected(part, asked, kept)


def row_of(rows: Sequence[Injected]) -> dict[str, float]:
    """The columns of one set; `precision` over the questions that have lines."""
    answered = [one for one in rows if one.gold]
    with_lines = [one for one in rows if one.lines]
    return {
        "evidence": _mean([one.found / one.gold for one in answered]),
        "tokens": _mean([one.tokens for one in rows]),
        "lines": _mean([one.lines for one in rows]),
        "precision": _mean([one.found / one.lines for one in with_lines]),
        "nothing": _mean([not one.lines for one in rows]),
    }


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 4) if values else 0.0


def report_of(pairs: Sequence[tuple[Injected, Injected]]) -> dict[str, Any]:
    parts = dict.fromkeys(before.part for before, _ in pairs)
    return {
        part: {
            "questions": sum(before.part == part for before, _ in pairs),
            "without": row_of([before for before, _ in pairs if before.part == part]),
            "with": row_of([after for _, after in pairs if after.part == part]),
        }
        for part in parts
    }


def table(report: dict[str, Any]) -> Table:
    made = table_of(
        "set", "questions", *COLUMNS, title="Injected per question, without -> with the floor"
    )
    for part, row in report.items():
        cells = (f"{row['without'][name]:.3f} -> {row['with'][name]:.3f}" for name in COLUMNS)
        made.add_row(part, str(row["questions"]), *cells)
    return made


def parser() -> argparse.ArgumentParser:
    made = command_parser("tests.bench.injected", __doc__)
    made.add_argument("--data", type=Path, required=True, help="folder that holds the sets")
    made.add_argument("--share", type=float, default=SETTINGS.min_share, help="of the best hit")
    made.add_argument("--rise", type=float, default=SETTINGS.share_rise, help="of that share")
    return made


def _run(arguments: argparse.Namespace) -> int:
    settings = ContextSettings(min_share=arguments.share, share_rise=arguments.rise)
    report = report_of(list(measured(arguments.data, settings)))
    put_json(arguments.out, report)
    Console().print(table(report))
    return DONE


main = partial(run_command, parser, _run)

if __name__ == "__main__":
    sys.exit(main())
