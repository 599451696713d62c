"""The service and what users would pick instead, in one run on one machine.

    python -m tests.bench.peers --data DIR --data-dir .rayapp --make-env --out F

Every system gets the same texts, questions, limits and embedder (the bundled static model), one
system after the other, and is asked one question at a time; embedding is part of every time. The
sets of `jobs.evaluate` give quality (LoCoMo its categories 1 to 4; our reranker learned from HeQ),
seeded texts of many users give ingest and search times.
Chroma and mem0 are no dependencies: they run in an environment of their own, which `--make-env`
makes with the versions pinned in `tests.bench.peer_env`; or by hand, passed as `--env ENV`:

    python -m venv ENV
    ENV/bin/pip install chromadb==1.5.9 mem0ai==2.2.1 qdrant-client==1.17.1 fastembed==0.9.1 \\
        stop-words==2025.11.4 orjson tokenizers numpy simplemma==2.0.0

`tests.bench.peer_protocol` says what goes to a peer's process and back. The service keeps what it
stored, under users of this run; the peers' stores are removed. Exit codes: 0 done, 2 bad arguments,
3 a system could not run (its reason is printed), 4 the service is away.
"""

import argparse
import asyncio
import os
import secrets
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
from rich.console import Console

from jobs.ending import DONE, WITH_FAILURES, command_parser, run_command
from jobs.suites import SUITES
from jobs.suites.outputs import put_json
from jobs.suites.runner import DEPTH
from jobs.suites.suite import Suite
from rayapp.client import MemoryClient
from rayapp.client.discovery import read_key, service_url
from rayapp.client.progress import Progress
from rayapp.core.errors import ConfigError, RayappError
from rayapp.core.settings.load import load_settings
from rayapp.inference.backends.static_model import find_model
from rayapp.local.cli.output import report_console
from tests.bench import peer_protocol, peer_report
from tests.bench.arguments import positive, positive_number
from tests.bench.peer_env import make_env, python_of
from tests.bench.peer_ours import OURS, Service
from tests.bench.peer_systems import FOREIGN, ON_QDRANT, SYSTEMS
from tests.support.qdrant_binary import cache_folder, start_qdrant

REPOSITORY = Path(__file__).parents[2]
NAMES = (OURS, *SYSTEMS)
SEARCH_LIMIT = 10  # results per timed question, as in the load test
WARM = 100  # questions asked and not counted before the timed ones
POLL_S = 0.5  # between two looks at a peer's progress
JOB = "job.jsonl"
LOG_TAIL = 300  # characters of a peer's log in the reason of its failure


def parser() -> argparse.ArgumentParser:
    made = command_parser("tests.bench.peers", __doc__)
    made.add_argument("--data", type=Path, required=True, help="folder that holds the sets")
    made.add_argument("--systems", nargs="+", choices=NAMES, default=list(NAMES))
    made.add_argument("--memories", type=positive, default=100_000)
    made.add_argument("--users", type=positive, default=1_000)
    made.add_argument("--questions", type=positive, default=1_000, help="timed questions")
    made.add_argument("--sets", nargs="*", choices=list(SUITES), default=list(SUITES))
    made.add_argument("--conversations", type=positive, help="LoCoMo conversations; default: all")
    made.add_argument("--limit-questions", type=positive, help="per quality set, spread")
    made.add_argument("--adds", type=positive, default=2_000, help="single adds that are timed")
    made.add_argument("--seed", type=int, default=7)
    made.add_argument("--model", help="static model; default: the default of embedding.model")
    made.add_argument("--url", help="service; default: the stack of --data-dir")
    made.add_argument("--data-dir", type=Path, help="data directory of the local stack")
    made.add_argument("--api-key-file", type=Path, help="bearer key with the admin scope")
    made.add_argument(
        "--env", type=Path, default=cache_folder() / "peers", help="the peers' environment"
    )
    made.add_argument("--make-env", action="store_true", help="make it first when it is not there")
    made.add_argument(
        "--limit-s", type=positive_number, default=7_200.0, help="longest time of one peer"
    )
    return made


def quality_parts(arguments: argparse.Namespace) -> list[peer_protocol.Part]:
    """Each set with the depth that `jobs.evaluate` asks for."""
    parts = []
    for name in arguments.sets:
        suite: Suite = SUITES[name](arguments.data)
        if name == peer_report.LOCOMO:
            suite = replace(suite, corpora=suite.corpora[: arguments.conversations])
        suite = suite.sampled(arguments.limit_questions)
        parts.append(peer_protocol.Part(name, DEPTH, suite.corpora))
    return parts


def timed_part(arguments: argparse.Namespace, name: str) -> peer_protocol.Part:
    """The part of this name: all have the same memories and questions of their own."""
    shape = peer_protocol.Shape(
        arguments.memories,
        min(arguments.users, arguments.memories),
        arguments.questions,
        WARM,
        SEARCH_LIMIT,
    )
    return peer_protocol.speed_part(name, shape, arguments.seed)


@dataclass(frozen=True, slots=True)
class Bench:
    """One run: what is asked, of whom, and where peers may write."""

    arguments: argparse.Namespace
    parts: Sequence[peer_protocol.Part]
    bare: peer_protocol.Part
    progress: Progress
    scratch: Path

    async def run(self) -> list[peer_protocol.SystemRun]:
        """Every system, one after the other."""
        runs: list[peer_protocol.SystemRun] = []
        for system in dict.fromkeys(self.arguments.systems):
            begin = time.monotonic()
            run = await (self._ours() if system == OURS else self._peer(system))
            run.elapsed_s = time.monotonic() - begin
            runs.append(run)
        return runs

    async def _ours(self) -> peer_protocol.SystemRun:
        arguments = self.arguments
        url = service_url(arguments.url, arguments.data_dir)
        run_id = f"{datetime.now(UTC):%H%M%S}-{secrets.token_hex(2)}"
        key = read_key(arguments.api_key_file)
        async with MemoryClient(url, api_key=key) as client:
            service = Service(client, run_id, self.progress)
            run = await service.run(self.parts)
            if key is None:  # the bare connection carries no key
                run.parts[self.bare.name] = await service.bare(self.bare, self.parts[-1], run)
        return run

    async def _peer(self, system: str) -> peer_protocol.SystemRun:
        folder = self.scratch / system
        folder.mkdir()
        try:
            with ExitStack() as stack:
                return await self.in_process(system, folder, stack)
        except (RayappError, OSError, ValueError) as error:
            return peer_protocol.SystemRun(system, failed=str(error))

    async def in_process(
        self, system: str, folder: Path, stack: ExitStack
    ) -> peer_protocol.SystemRun:
        """A peer's worker from job to answers; its Qdrant server runs until the stack closes."""
        arguments = self.arguments
        python = python_of(arguments.env) if system in FOREIGN else Path(sys.executable)
        store = folder / "store"
        store.mkdir()
        plan = peer_protocol.Plan(system, str(model_folder(arguments)), str(store), arguments.adds)
        if system in ON_QDRANT:
            server = await asyncio.to_thread(start_qdrant, folder / "qdrant")
            stack.callback(server.stop)
            plan = replace(plan, host="127.0.0.1", port=server.http_port)
        job, out, log = (folder / name for name in (JOB, "out.jsonl", "log.txt"))
        peer_protocol.write_job(job, plan, self.parts)
        code = await self._watched(python, (job, out, log), system)
        run = peer_protocol.read_run(
            system, peer_protocol.rows_of(out.read_bytes()) if out.exists() else ()
        )
        if code and not out.exists():
            run.failed = f"exit code {code}: {log.read_text(errors='replace')[-LOG_TAIL:].strip()}"
        return run

    async def _watched(self, python: Path, files: tuple[Path, Path, Path], system: str) -> int:
        """Run the worker and follow its progress; ended when it takes too long."""
        job, out, log = files
        total = sum(part.documents + len(part.questions) for part in self.parts)
        command = [str(python), "-m", "tests.bench.peer_worker", str(job), str(out)]
        deadline = time.monotonic() + self.arguments.limit_s
        with log.open("wb") as sink, self.progress.step(system, total) as bar:
            worker = await asyncio.create_subprocess_exec(
                *command, cwd=REPOSITORY, env=quiet(), stdout=sink, stderr=sink
            )
            waited = asyncio.create_task(worker.wait())
            try:
                while not (await asyncio.wait({waited}, timeout=POLL_S))[0]:
                    bar.at(_done(out))
                    if time.monotonic() > deadline:
                        raise ConfigError(
                            f"it took longer than {self.arguments.limit_s:.0f} s: raise --limit-s."
                        )
                bar.at(_done(out))
            finally:
                if worker.returncode is None:
                    worker.kill()
                await waited
        return worker.returncode or 0


def quiet() -> dict[str, str]:
    """The environment of a peer's process: it finds this repository and reports to nobody."""
    return os.environ | {"PYTHONPATH": str(REPOSITORY), "ANONYMIZED_TELEMETRY": "False"}


def _done(out: Path) -> int:
    """Rows that the last line of progress counts."""
    if not out.exists():
        return 0
    with out.open("rb") as file:
        file.seek(max(0, out.stat().st_size - (1 << 16)))
        tail = file.read()
    counts = [line for line in tail.split(b"\n")[:-1] if line.startswith(b'{"kind":"done"')]
    return int(orjson.loads(counts[-1])["rows"]) if counts else 0


def model_folder(arguments: argparse.Namespace) -> Path:
    """The static model of every system but the service, which runs its own.

    Raises:
        ConfigError: the settings name another kind of embedder, or there is no such model.
    """
    embedding = load_settings().embedding
    if arguments.model is None and embedding.backend != "static":
        raise ConfigError("The settings name no static model: pass --model, or unset them.")
    return find_model(arguments.model or embedding.model)


async def measure(arguments: argparse.Namespace, console: Console) -> dict[str, Any]:
    """The whole run; the report.

    Raises:
        RayappError: a set or an environment is missing, or the service is away.
    """
    model = model_folder(arguments)
    wanted = set(arguments.systems)
    if wanted & FOREIGN:
        if arguments.make_env and not (arguments.env / "bin" / "python").exists():
            make_env(arguments.env)
        python_of(arguments.env)
    if OURS in wanted:
        await _probe(arguments)
    parts = [*quality_parts(arguments), timed_part(arguments, peer_report.SPEED)]
    bare = timed_part(arguments, peer_report.BARE)
    with Progress(console) as progress, TemporaryDirectory(prefix="peers-") as scratch:
        runs = await Bench(arguments, parts, bare, progress, Path(scratch)).run()
    return {
        "at": datetime.now(UTC).isoformat(),
        "cores": os.cpu_count(),
        "model": model.name,
        "memories": arguments.memories,
        "users": min(arguments.users, arguments.memories),
        "questions": {part.name: len(part.questions) - part.warm for part in parts},
        "limits": {part.name: part.limit for part in parts},
        "systems": peer_report.systems_report([*parts, bare], runs),
    }


async def _probe(arguments: argparse.Namespace) -> None:
    """An absent service ends the run before anything is stored."""
    url = service_url(arguments.url, arguments.data_dir)
    async with MemoryClient(url, api_key=read_key(arguments.api_key_file)) as client:
        await client.backlog()


def _run(arguments: argparse.Namespace) -> int:
    console = report_console()
    report = asyncio.run(measure(arguments, console))
    put_json(arguments.out, report)
    entries = report["systems"]
    title = f"{report['memories']:,} memories of {report['users']:,} users, {report['model']}"
    console.print(peer_report.table(entries, title))
    for line in peer_report.notes(entries):
        console.print(line)
    return WITH_FAILURES if any(entry["failed"] for entry in entries) else DONE


main = partial(run_command, parser, _run)

if __name__ == "__main__":
    sys.exit(main())
