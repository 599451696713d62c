"""The speed of the service and of its peers, all over HTTP, asked in turns in one run.

    python -m tests.bench.peer_speed --data-dir .rayapp --make-env --out F.json --picture F.svg

Every system holds the same seeded texts of the same users, made into vectors by the same bundled
static model, and listens on loopback: ours as `rayapp up` runs it; mem0 in
`tests.bench.peer_server` (uvicorn, no framework) with a Qdrant server of its own, embedding in its
process; Chroma as its own `chroma run`, with the question's vector in the request, made before the
clock starts: its times are without embedding. The client is that of `tests.bench.wire`, in
processes of its own.

First every user's first text is asked for, which warms each system and shows that it finds what it
holds. Then nobody asks for a while: idle CPU and memory. Then turns: in each turn every system is
asked for some seconds, for each number of clients, in another order each time. CPU per search is
that of all processes of a system inside the measured seconds. Ratios are medians over turns.

Chroma and mem0 run in the environment of `tests.bench.peers`. The service keeps what it stored,
and `--reuse` with the run's id measures it again; the peers' stores are removed. Exit codes: 0
done, 2 bad arguments, 3 a system could not run or failed calls, 4 the service is away.
"""

import argparse
import asyncio
import importlib
import multiprocessing
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
import psutil
from rich.console import Console

from jobs.ending import DONE, WITH_FAILURES, command_parser, run_command
from jobs.suites.outputs import put, put_json
from jobs.suites.suite import Corpus
from rayapp.client import MemoryClient
from rayapp.client.discovery import data_dir_of, read_state, service_url
from rayapp.client.progress import Progress
from rayapp.core.errors import ConfigError, DependencyDown, RayappError
from rayapp.local.cli.output import report_console
from tests.bench import peer_speed_report
from tests.bench.arguments import not_negative_number, positive, positive_number
from tests.bench.closed_loop import client_processes, shared_out
from tests.bench.peer_env import make_env, python_of
from tests.bench.peer_ours import OURS, Service
from tests.bench.peer_protocol import Part, Plan, Shape, rows_of, speed_part
from tests.bench.peer_report import SPEED
from tests.bench.peer_speed_report import Idle, Slice
from tests.bench.peer_systems import ON_QDRANT, Embedder
from tests.bench.peers import JOB, LOG_TAIL, REPOSITORY, SEARCH_LIMIT, Bench, model_folder, quiet
from tests.bench.processes import MIB, stack_processes
from tests.bench.wire import Call, Connection, Drive, Driven, drive
from tests.support.ports import free_port
from tests.support.qdrant_binary import cache_folder

NAMES = tuple(peer_speed_report.LABELS)
CHROMA_HOME = "/api/v2/tenants/default_tenant/databases/default_database/collections"
LOOPBACK = "127.0.0.1"
LEAD_S = 0.7  # until the client processes have their calls and begin together
SPAWN_S = 3.0  # in which every client process is started and has imported the client
START_LIMIT_S, STOP_LIMIT_S, POLL_S = 120.0, 10.0, 0.1
REST_S = 10.0  # after the last question, before a system counts as idle


@dataclass(frozen=True, slots=True)
class Target:
    """A system that listens.

    Attributes:
        body: of a search for one text of one user.
        texts: of an answer, best first.
        users: prefix of the users' names.
        processes: all that are alive now; none where they are not in reach.
    """

    name: str
    url: str
    path: str
    body: Callable[[str, str], bytes]
    texts: Callable[[Any], list[str]]
    processes: Callable[[], Collection[psutil.Process]]
    users: str = ""

    def call(self, user: str, text: str) -> Call:
        whose = self.users + user
        return Call(self.path, self.body(whose, text), whose)


def parser() -> argparse.ArgumentParser:
    made = command_parser("tests.bench.peer_speed", __doc__)
    made.add_argument("--picture", type=Path, help="SVG of the numbers")
    made.add_argument("--systems", nargs="+", choices=NAMES, default=list(NAMES))
    made.add_argument("--memories", type=positive, default=100_000)
    made.add_argument("--users", type=positive, default=1_000)
    made.add_argument("--questions", type=positive, default=16_000, help="distinct, over all turns")
    made.add_argument("--clients", type=positive, nargs="+", default=[1, 8])
    made.add_argument("--turns", type=positive, default=6)
    made.add_argument("--seconds", type=positive_number, default=5.0, help="of a system in a turn")
    made.add_argument("--warm-s", type=not_negative_number, default=1.0, help="before each of them")
    made.add_argument("--idle-s", type=positive_number, default=30.0, help="watched while idle")
    made.add_argument("--seed", type=int, default=7)
    made.add_argument("--reuse", metavar="RUN_ID", help="what this run stored in the service")
    made.add_argument("--model", help="static model; default: the default of embedding.model")
    made.add_argument("--url", help="service; default: the stack of --data-dir")
    made.add_argument("--data-dir", type=Path, help="data directory of the local stack")
    made.add_argument(
        "--env", type=Path, default=cache_folder() / "peers", help="the peers' environment"
    )
    made.add_argument("--make-env", action="store_true", help="make it first when it is not there")
    made.add_argument(
        "--limit-s", type=positive_number, default=7_200.0, help="longest time to fill one peer"
    )
    # A peer that takes one item per add is filled in batches; nothing is timed there.
    made.set_defaults(adds=1)
    return made


class SetUp:
    """Fills and starts the systems; the peers live until `stack` closes."""

    def __init__(
        self, arguments: argparse.Namespace, part: Part, progress: Progress, stack: ExitStack
    ) -> None:
        self._arguments, self._part, self._progress, self._stack = arguments, part, progress, stack
        bare = tuple(replace(corpus, questions=()) for corpus in part.corpora)
        self._stored = replace(part, corpora=bare)
        self._scratch = Path(stack.enter_context(TemporaryDirectory(prefix="peer-speed-")))
        self._embed = Embedder(str(model_folder(arguments)))
        self.run_id: str = arguments.reuse or secrets.token_hex(4)

    async def ours(self) -> Target:
        data_dir = data_dir_of(self._arguments.data_dir)
        url = service_url(self._arguments.url, self._arguments.data_dir)
        async with MemoryClient(url) as client:
            service = Service(client, self.run_id, self._progress)
            if self._arguments.reuse is None:
                await service.run([self._stored])
            users = service.user(self._part, "")
        # Only the stack of the data directory can be looked into; another URL is HTTP alone.
        local = (
            read_state(data_dir) is not None and service_url(None, self._arguments.data_dir) == url
        )
        return Target(
            OURS,
            url,
            "/api/memory/search",
            lambda _user, text: orjson.dumps({"query": text, "limit": SEARCH_LIMIT}),
            lambda found: [row["content"] for row in found["results"]],
            lambda: stack_processes(data_dir) if local else (),
            users,
        )

    async def peer(self, system: str) -> Target:
        """Fill it by the worker of `tests.bench.peers`, then serve what that left.

        Raises:
            ConfigError: it could not be filled or does not come up.
        """
        before = set(psutil.Process().children())
        folder = self._scratch / system
        folder.mkdir()
        bench = Bench(self._arguments, [self._stored], self._stored, self._progress, folder)
        run = await bench.in_process(system, folder, self._stack)
        if run.failed is not None:
            raise ConfigError(run.failed)
        with (folder / JOB).open("rb") as file:
            row = next(rows_of(file.readline()))
        del row["kind"]
        port = free_port()
        plan = Plan(**row)
        self._stack.enter_context(served(self._command(plan, folder, port), folder, port))
        roots = set(psutil.Process().children()) - before
        url = f"http://{LOOPBACK}:{port}"
        if system in ON_QDRANT:
            return Target(system, url, "/search", mem0_body, mem0_texts, lambda: trees(roots))
        path = f"{CHROMA_HOME}/{await collection_id(url)}/query"
        return Target(system, url, path, self._chroma_body, chroma_texts, lambda: trees(roots))

    def _command(self, plan: Plan, folder: Path, port: int) -> list[str]:
        python = python_of(self._arguments.env)
        if plan.system not in ON_QDRANT:
            chroma = python.with_name("chroma")
            where = ["--path", plan.folder, "--host", LOOPBACK, "--port", str(port)]
            return [str(chroma), "run", *where]
        # Its vectors are in Qdrant; the rest it makes anew.
        home = folder / "served"
        home.mkdir()
        file = folder / "plan.json"
        file.write_bytes(orjson.dumps(asdict(replace(plan, folder=str(home)))))
        return [str(python), "-m", "tests.bench.peer_server", str(file), SPEED, str(port)]

    def _chroma_body(self, user: str, text: str) -> bytes:
        """As its own client asks, vector included."""
        asked = {
            "query_embeddings": self._embed([text]),
            "n_results": SEARCH_LIMIT,
            "where": {"user_id": user},
            "include": ["metadatas", "documents", "distances"],
        }
        return orjson.dumps(asked, option=orjson.OPT_SERIALIZE_NUMPY)


def mem0_body(user: str, text: str) -> bytes:
    return orjson.dumps({"query": text, "user_id": user, "limit": SEARCH_LIMIT})


def mem0_texts(found: Any) -> list[str]:
    return [row["memory"] for row in found["results"]]


def chroma_texts(found: Any) -> list[str]:
    return list(found["documents"][0])


async def collection_id(url: str) -> str:
    connection = Connection(url)
    status, body = await connection.call("GET", f"{CHROMA_HOME}/{SPEED}")
    connection.close()
    if status != 200:
        raise ConfigError(f"Chroma does not show its collection ({status}): {body[:LOG_TAIL]!r}.")
    return str(orjson.loads(body)["id"])


@contextmanager
def served(command: Sequence[str], folder: Path, port: int) -> Iterator[None]:
    """A peer's server until the end of the block.

    Raises:
        ConfigError: it ended, or does not listen in time.
    """
    log = folder / "server.txt"
    with log.open("wb") as sink:
        process = subprocess.Popen(
            command, cwd=REPOSITORY, env=quiet() | {"HOME": str(folder)}, stdout=sink, stderr=sink
        )
        try:
            deadline = time.monotonic() + START_LIMIT_S
            while not _listens(port):
                if process.poll() is not None or time.monotonic() > deadline:
                    tail = log.read_text(errors="replace")[-LOG_TAIL:].strip()
                    raise ConfigError(f"Its server did not start: {tail}")
                time.sleep(POLL_S)
            yield
        finally:
            process.terminate()
            try:
                process.wait(STOP_LIMIT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(STOP_LIMIT_S)


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection((LOOPBACK, port), timeout=1.0):
        return True
    return False


def trees(roots: Collection[psutil.Process]) -> list[psutil.Process]:
    found = []
    for root in roots:
        with suppress(psutil.NoSuchProcess):
            found += [root, *root.children(recursive=True)]
    return found


def cpu_s(processes: Collection[psutil.Process]) -> dict[int, float]:
    """Seconds that each has computed so far."""
    seconds = {}
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            seconds[process.pid] = times.user + times.system
    return seconds


def between(before: Mapping[int, float], after: Mapping[int, float]) -> float:
    """What those computed that were there before and after."""
    return sum(seconds - before[pid] for pid, seconds in after.items() if pid in before)


async def warm(target: Target, part: Part, progress: Progress) -> float:
    """Ask for each user's first text; the share of users whose answer holds it.

    Raises:
        DependencyDown: a search was not answered with 200.
    """
    asked = [corpus for corpus in part.corpora if corpus.documents]
    found = 0
    connection = Connection(target.url)
    with progress.step(f"warm {target.name}", len(asked)) as bar:
        for corpus in asked:
            found += await _finds_first(target, connection, corpus)
            bar.advance()
    connection.close()
    return found / len(asked)


async def _finds_first(target: Target, connection: Connection, corpus: Corpus) -> bool:
    first = corpus.documents[0].text
    call = target.call(corpus.name, first)
    status, body = await connection.call("POST", call.path, call.body, call.user_id)
    if status != 200:
        raise DependencyDown(f"{target.name} answered {status}: {body[:LOG_TAIL]!r}.")
    return first in target.texts(orjson.loads(body))


def idle(targets: Sequence[Target], seconds: float) -> dict[str, Idle]:
    """All systems in the same seconds, in which nobody asks."""
    time.sleep(REST_S)
    alive = {target.name: target.processes() for target in targets}
    before = {name: cpu_s(processes) for name, processes in alive.items()}
    time.sleep(seconds)
    found = {}
    for name, processes in alive.items():
        if not processes:
            continue
        spent = between(before[name], cpu_s(processes))
        memory = []
        for process in processes:
            with suppress(psutil.Error):
                memory.append(process.memory_full_info())
        uss, pss = (sum(getattr(one, kind) for one in memory) / MIB for kind in ("uss", "pss"))
        found[name] = Idle(len(memory), 100.0 * spent / seconds, uss, pss)
    return found


@dataclass(frozen=True, slots=True)
class Turns:
    """Every system in every turn under every number of clients."""

    targets: Sequence[Target]
    part: Part
    arguments: argparse.Namespace

    def run(self, progress: Progress) -> list[Slice]:
        arguments = self.arguments
        asked = self.part.questions
        counts = sorted(set(arguments.clients))
        share = arguments.turns * len(counts)  # no question is asked twice of one system
        most = max(map(client_processes, counts))
        found: list[Slice] = []
        context = multiprocessing.get_context("spawn")
        with (
            ProcessPoolExecutor(
                most, context, importlib.import_module, ("tests.bench.wire",)
            ) as pool,
            progress.step("turns", share * len(self.targets)) as bar,
        ):
            list(pool.map(time.sleep, [SPAWN_S] * most))
            for number in range(share):
                turn, clients = divmod(number, len(counts))
                questions = asked[number::share] or asked
                for target in rotated(self.targets, turn):
                    calls = [target.call(user, question.text) for user, question in questions]
                    found.append(self._slice(pool, target, turn, counts[clients], calls))
                    bar.advance()
        return found

    def _slice(
        self,
        pool: ProcessPoolExecutor,
        target: Target,
        turn: int,
        clients: int,
        calls: Sequence[Call],
    ) -> Slice:
        arguments = self.arguments
        processes = target.processes()
        whole = Drive(
            url=target.url,
            clients=clients,
            start_at=time.time() + LEAD_S,
            warm_s=arguments.warm_s,
            measure_s=arguments.seconds,
            calls=calls,
        )
        waiting = [pool.submit(drive, plan) for plan in shared_out(whole)]
        begin = whole.start_at + whole.warm_s
        time.sleep(max(0.0, begin - time.time()))
        before = cpu_s(processes)
        time.sleep(max(0.0, begin + whole.measure_s - time.time()))
        spent = between(before, cpu_s(processes)) if processes else None
        seen: list[Driven] = [future.result() for future in waiting]
        statuses: dict[str, int] = {}
        for one in seen:
            for status, count in one.statuses.items():
                statuses[str(status)] = statuses.get(str(status), 0) + count
        return Slice(
            system=target.name,
            clients=clients,
            turn=turn,
            measure_s=whole.measure_s,
            latencies_ms=[value for one in seen for value in one.latencies_ms],
            statuses=statuses,
            failed=sum(one.lost + one.refused for one in seen),
            cpu_s=spent,
            client_cpu_s=sum(one.cpu_s for one in seen),
        )


def rotated(targets: Sequence[Target], turn: int) -> list[Target]:
    """Another one first in each turn, so that none always follows the same one's work."""
    start = turn % len(targets)
    return [*targets[start:], *targets[:start]]


async def set_up(
    arguments: argparse.Namespace, part: Part, progress: Progress, stack: ExitStack
) -> tuple[SetUp, list[Target], dict[str, str]]:
    """The systems that listen, and why the others do not."""
    made = SetUp(arguments, part, progress, stack)
    targets, absent = [], {}
    for system in dict.fromkeys(arguments.systems):
        if system == OURS:
            targets.append(await made.ours())
            continue
        try:
            targets.append(await made.peer(system))
        except (RayappError, OSError, ValueError) as error:
            absent[system] = str(error)
    return made, targets, absent


def measure(arguments: argparse.Namespace, console: Console) -> dict[str, Any]:
    """The whole run; the report.

    Raises:
        RayappError: the environment is missing, the service is away, or a warm-up failed.
    """
    if set(arguments.systems) - {OURS}:
        if arguments.make_env and not (arguments.env / "bin" / "python").exists():
            make_env(arguments.env)
        python_of(arguments.env)
    users = min(arguments.users, arguments.memories)
    shape = Shape(arguments.memories, users, arguments.questions, 0, SEARCH_LIMIT)
    part = speed_part(SPEED, shape, arguments.seed)
    load_before = os.getloadavg()
    with ExitStack() as stack:
        progress = stack.enter_context(Progress(console))
        made, targets, absent = asyncio.run(set_up(arguments, part, progress, stack))
        finds = {one.name: asyncio.run(warm(one, part, progress)) for one in targets}
        resting = idle(targets, arguments.idle_s)
        load_turns = os.getloadavg()
        slices = Turns(targets, part, arguments).run(progress) if targets else []
    return {
        "at": datetime.now(UTC).isoformat(),
        "run_id": made.run_id,
        "cores": os.cpu_count(),
        # One, five and fifteen minutes, the systems' own work included.
        "load_average": {"begin": load_before, "turns": load_turns, "end": os.getloadavg()},
        "memories": arguments.memories,
        "users": users,
        "turns": arguments.turns,
        "seconds": arguments.seconds,
        "finds_first_text": finds,
        "not_runnable": absent,
        "systems": peer_speed_report.systems_report(slices, resting),
        "ours_over_peers": peer_speed_report.against(slices),
        "failed": bool(absent) or peer_speed_report.failed(slices),
    }


def _run(arguments: argparse.Namespace) -> int:
    console = report_console()
    started = time.monotonic()
    report = measure(arguments, console)
    report["elapsed_s"] = round(time.monotonic() - started, 1)
    title = f"{report['memories']:,} memories of {report['users']:,} users, {report['cores']} cores"
    put_json(arguments.out, report)
    if arguments.picture is not None:
        put(arguments.picture, peer_speed_report.picture(report["systems"], title).encode())
    console.print(peer_speed_report.table(report["systems"], title))
    for line in peer_speed_report.summary(report["ours_over_peers"]):
        console.print(line, soft_wrap=True)
    for name, share in report["finds_first_text"].items():
        console.print(f"{name}: {share:.1%} of the users find their first text")
    for name, reason in report["not_runnable"].items():
        console.print(f"{name}: not runnable here: {reason}")
    load = {when: round(load[0], 1) for when, load in report["load_average"].items()}
    console.print(f"load average {load}, run {report['run_id']}")
    return WITH_FAILURES if report["failed"] else DONE


main = partial(run_command, parser, _run)

if __name__ == "__main__":
    sys.exit(main())
