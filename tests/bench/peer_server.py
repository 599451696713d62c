"""mem0 behind HTTP, in the peers' environment: `python -m tests.bench.peer_server PLAN PART PORT`.

mem0 is a library; this is the least that a service around it takes: uvicorn and no framework, each
search in a thread, what `Memory.search` answers as JSON. It serves the part that `peer_worker`
stored in the Qdrant server of the plan (a JSON file). `POST /search` takes `query`, `user_id` and
`limit`.
"""

import asyncio
import importlib
import sys
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

import orjson

from tests.bench.peer_protocol import Plan
from tests.bench.peer_systems import Mem0, Mem0Dense

THREADS = 40  # as many as a FastAPI service gives to its plain functions
SERVED: dict[str, type[Mem0]] = {"mem0": Mem0, "mem0-dense": Mem0Dense}

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class Searched(Protocol):
    def hits(self, user: str, text: str, limit: int) -> list[dict[str, Any]]: ...


def application(system: Searched) -> Callable[[Any, Receive, Send], Awaitable[None]]:
    """The ASGI application."""
    pool = ThreadPoolExecutor(THREADS)

    async def answer(scope: Any, receive: Receive, send: Send) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        asked = orjson.loads(body)
        found = await asyncio.get_running_loop().run_in_executor(
            pool, system.hits, asked["user_id"], asked["query"], asked["limit"]
        )
        payload = orjson.dumps({"results": found}, option=orjson.OPT_SERIALIZE_NUMPY)
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(payload)).encode()),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": payload})

    return answer


def main(argv: Sequence[str]) -> int:
    file, part, port = argv
    plan = Plan(**orjson.loads(Path(file).read_bytes()))
    system = SERVED[plan.system](plan)
    system.open(part)
    # Late: with `chromadb` it comes into the peers' environment.
    uvicorn: Any = importlib.import_module("uvicorn")
    uvicorn.run(
        application(system),
        host="127.0.0.1",
        port=int(port),
        lifespan="off",
        access_log=False,
        log_level="warning",
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
