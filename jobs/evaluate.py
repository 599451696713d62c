"""Retrieval quality through the public HTTP API, beside a plain BM25 floor of the same run.

    python -m jobs.evaluate --suite locomo --suite heq --data DIR --out report.json
    python -m jobs.evaluate --all --data DIR --ablate --markdown report.md --picture report.svg
    python -m jobs.evaluate --all --data DIR --golden FOLDER     # write the results to commit
    python -m jobs.evaluate --all --data DIR --against FOLDER    # hold a run to them

Every run stores under user ids of its own and deletes nothing. The reports are written after each
suite. Exit codes: 0 done, 2 bad arguments or other data than the committed results are of, 3
finished with failures, below the committed results or with too many degraded answers to commit, 4
the service is away.
"""

import argparse
import asyncio
import secrets
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

from rich.console import Console

from jobs.ending import BAD_ARGUMENTS, DONE, WITH_FAILURES, exit_code_of, positive
from jobs.suites.ablation import compare_variants, variants
from jobs.suites.compare import SLACK_QUESTIONS, TOLERANCE
from jobs.suites.gate import gate, read_committed
from jobs.suites.golden import Golden, data_hashes, replace_texts, write_golden
from jobs.suites.kinds import KINDS, Runner, Setting
from jobs.suites.outputs import check_folder
from jobs.suites.report import latency
from jobs.suites.results import Evaluated, Outputs, Results, show, show_gates
from jobs.suites.runner import RunOptions
from jobs.suites.searched import MOST_DEGRADED
from rayapp.client import MemoryClient
from rayapp.client.discovery import read_key, service_url
from rayapp.client.progress import Progress
from rayapp.core.errors import ConfigError
from rayapp.local.cli.output import report_console
from rayapp.search.rules.recipes import FEATURES, ablated_name


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"{message[:1].upper()}{message[1:]}: see --help.")


def parser() -> argparse.ArgumentParser:
    made = _Parser(prog="python -m jobs.evaluate", description=__doc__, allow_abbrev=False)
    made.formatter_class = argparse.RawDescriptionHelpFormatter
    chosen = made.add_mutually_exclusive_group(required=True)
    chosen.add_argument(
        "--suite", action="append", choices=sorted(KINDS), help="set to run; repeat it for several"
    )
    chosen.add_argument(
        "--all", action="store_const", dest="suite", const=list(KINDS), help="run every set"
    )
    made.add_argument("--data", type=Path, required=True, help="folder that holds the sets")
    made.add_argument("--url", help="service; default: the stack of --data-dir")
    made.add_argument("--data-dir", type=Path, help="data directory of the local stack")
    made.add_argument(
        "--api-key-file",
        type=Path,
        help="file that holds the bearer key; it needs the admin scope, because every suite is "
        "stored under a user of its own (X-User-Id)",
    )
    made.add_argument("--recipe", help="retrieval recipe; default: the server's")
    made.add_argument("--limit-questions", type=positive, help="questions per suite, spread")
    made.add_argument("--concurrency", type=positive, default=4, help="questions in flight")
    _add_comparisons(made)
    made.add_argument("--out", type=Path, help="JSON report")
    made.add_argument("--markdown", type=Path, help="Markdown report")
    made.add_argument("--picture", type=Path, help="SVG of the results beside the floor")
    return made


def _add_comparisons(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "--without",
        action="append",
        default=[],
        choices=list(FEATURES),
        help="run with this feature off; repeat it for several",
    )
    made.add_argument(
        "--ablate",
        action="store_true",
        help="run with everything and once without each feature (or each of --without), compared",
    )
    made.add_argument("--golden", type=Path, help="folder to write the results to commit to")
    made.add_argument("--against", type=Path, help="folder of committed results to hold the run to")
    made.add_argument(
        "--tolerance",
        type=_share,
        default=TOLERANCE,
        help=f"how much --against lets a measure lose (default {TOLERANCE}; {SLACK_QUESTIONS} "
        "questions of a small set, at most a quarter of a small rate)",
    )


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value < 1.0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share, a number from 0 up to 1")
    return value


@dataclass(frozen=True, slots=True)
class _Chosen:
    """One suite to run: its set, read and checked, and what it is held to."""

    name: str
    run: Runner[Any]
    data: Mapping[str, str]
    floor: Golden | None


@dataclass(frozen=True, slots=True)
class _Probed:
    """What answers (model, analyser, encoder, recipe), and the options of every variant to run."""

    service: Mapping[str, str]
    variants: Sequence[RunOptions]
    features: Sequence[str]


async def evaluate(arguments: argparse.Namespace, console: Console) -> int:
    """Run the suites and write the reports; returns the exit code."""
    outputs = Outputs(out=arguments.out, markdown=arguments.markdown, picture=arguments.picture)
    _check(arguments, outputs)
    chosen = _choose(arguments)
    url = service_url(arguments.url, arguments.data_dir)
    run_id = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(2)}"
    options = RunOptions(run_id=run_id, recipe=arguments.recipe, concurrency=arguments.concurrency)
    started = time.monotonic()
    async with MemoryClient(url, api_key=read_key(arguments.api_key_file)) as client:
        probed = await _probe(client, options, arguments)
        results = Results(run_id, url, probed.service, [one.name for one in chosen])
        try:
            with Progress(console) as progress:
                setting = Setting(
                    client=client, progress=progress, limit_questions=arguments.limit_questions
                )
                for one in chosen:
                    await _run(one, setting, probed, results)
                    results.at = datetime.now(UTC).isoformat()
                    results.elapsed_s = round(time.monotonic() - started, 1)
                    outputs.write(results)
        finally:
            show(results, console)
    return _judged(arguments, chosen, results, outputs, console)


def _judged(
    arguments: argparse.Namespace,
    chosen: Sequence[_Chosen],
    results: Results,
    outputs: Outputs,
    console: Console,
) -> int:
    """Hold the run to the committed results or commit it; returns the exit code.

    Raises ConfigError: it is no run of what the committed results are of.
    """
    incomparable = _hold(arguments, chosen, results)
    if results.gates:
        outputs.write(results)
        show_gates(results, console)
    if incomparable:
        raise ConfigError(" ".join(incomparable))
    refused = not _commit(arguments.golden, results, console)
    below = any(one.closed for one in results.gates)
    return WITH_FAILURES if results.failures or below or refused else DONE


def _check(arguments: argparse.Namespace, outputs: Outputs) -> None:
    """Raises ConfigError: options that contradict each other, or reports without a place."""
    partly = arguments.limit_questions is not None or (arguments.without and not arguments.ablate)
    if arguments.golden is not None and partly:
        raise ConfigError(
            "--golden writes what the whole service does with whole suites: "
            "leave out --limit-questions and --without."
        )
    if arguments.golden is not None and arguments.against is not None:
        raise ConfigError("--golden would replace what --against holds the run to: run them apart.")
    outputs.check()
    if arguments.golden is not None:
        check_folder(arguments.golden)


def _choose(arguments: argparse.Namespace) -> list[_Chosen]:
    """All sets, read and checked before the first of them runs. Raises ConfigError."""
    found = []
    for name in dict.fromkeys(arguments.suite):
        kind, against = KINDS[name], arguments.against
        data = data_hashes(kind.files, arguments.data, kind.ours)
        floor = read_committed(against, name, data) if against is not None else None
        found.append(_Chosen(name, kind.load(arguments.data), data, floor))
    return found


async def _probe(
    client: MemoryClient, options: RunOptions, arguments: argparse.Namespace
) -> _Probed:
    """An absent service, a refused recipe or key end the run before anything is stored."""
    config = (await client.diagnostics()).get("embedding_config") or {}
    base = await _answering(client, options) or options.recipe or "default"
    features = list(dict.fromkeys(arguments.without))
    if arguments.ablate:
        features = features or list(FEATURES)
        chosen = variants(options, base, features)
    else:
        recipe = ablated_name(base, features) if features else options.recipe
        chosen = [replace(options, recipe=recipe)]
        base, features = recipe or base, []
    for one in chosen if chosen != [options] else ():
        await _answering(client, one)
    service = {
        "model": str(config.get("model", "unknown")),
        "analyser": str(config.get("analyser", "unknown")),
        "encoder": str(config.get("encoder") or "off"),
        "recipe": base,
    }
    return _Probed(service, chosen, features)


async def _answering(client: MemoryClient, options: RunOptions) -> str | None:
    """The recipe that the service says it used. Raises RayappError."""
    reply = await client.search(
        "probe", limit=1, recipe=options.recipe, user_id=f"eval-probe-{options.run_id}"
    )
    return reply.debug.recipe


async def _run(chosen: _Chosen, setting: Setting, probed: _Probed, results: Results) -> None:
    """One suite with every variant; the first is the run that is reported."""
    kind = KINDS[chosen.name]
    runs = await chosen.run(setting, probed.variants)
    rows = [kind.told.rows(run) for run in runs]
    done = Evaluated(name=chosen.name, kind=kind, run=runs[0], rows=rows[0], data=chosen.data)
    results.suites.append(done)
    if probed.features:
        times = [latency(kind.answered(run)) or {} for run in runs]
        medians = [one.get("server_p50") for one in times]
        results.ablation += compare_variants(chosen.name, probed.features, rows, medians)


def _hold(arguments: argparse.Namespace, chosen: Sequence[_Chosen], results: Results) -> list[str]:
    """Gate every suite; returns why some could not be held to anything."""
    incomparable = []
    floors = {one.name: one.floor for one in chosen if one.floor is not None}
    for one in results.suites:
        if one.name not in floors:
            continue
        try:
            made = gate(
                floors[one.name],
                one.rows,
                results.service,
                searched=one.run.searched,
                hashes=one.data,
                tolerance=arguments.tolerance,
                whole=arguments.limit_questions is None,
            )
        except ConfigError as error:
            incomparable.append(error.message)
        else:
            results.gates.append(made)
    return incomparable


def _commit(folder: Path | None, results: Results, console: Console) -> bool:
    """False when a folder was named and nothing written.

    A run that failed or was answered in part is nothing to hold later runs to.
    """
    if folder is None:
        return True
    reasons = ["the run had failures"] if results.failures else []
    reasons += [
        f"in {one.name} {one.run.searched.line.rstrip('.')}, more than {MOST_DEGRADED:.0%}"
        for one in results.suites
        if one.run.searched.too_degraded
    ]
    if reasons:
        console.print(
            f"{folder} is left as it is, because {'; '.join(reasons)}: mend that and run it again.",
            soft_wrap=True,
        )
        return False
    for one in results.suites:
        rows = replace_texts(one.rows)
        golden = Golden(suite=one.name, data=one.data, service=results.service, rows=rows)
        path = write_golden(folder, golden)
        console.print(f"Written: {path}. {one.run.searched.line}", soft_wrap=True)
    return True


def main(argv: Sequence[str] | None = None) -> int:
    """Parse, run, and turn every expected failure into one sentence and its exit code."""
    console = report_console()
    try:
        return exit_code_of(lambda: asyncio.run(evaluate(parser().parse_args(argv), console)))
    except OSError as error:
        where = error.filename or "A file"
        print(f"{where} cannot be used ({error.strerror}): name another path.", file=sys.stderr)
        return BAD_ARGUMENTS


if __name__ == "__main__":
    sys.exit(main())
