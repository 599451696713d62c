"""Two clients that store and search through the fronts of a cluster while something dies."""

import asyncio
import secrets
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

import httpx

from tests.bench.fault_load import CALL_TIMEOUT_S, FAILED_PAUSE_S, PAUSE_S, Ended, Kind, Seen

# A client that cannot reach a front tries another one, as it does behind a load balancer.
CONNECT_S = 1.0
LIMITS = httpx.Timeout(CALL_TIMEOUT_S, connect=CONNECT_S)
READ_AGAIN = 20


@dataclass
class ClusterLoad:
    """`fronts`: the addresses of the workers, one client for each; `degraded`: stages that answers
    of searches named as skipped; `refusals`: answers of failed calls by status and code."""

    fronts: Sequence[str]
    users: Sequence[str]
    key: str
    seen: Seen = field(default_factory=Seen)
    owners: dict[str, str] = field(default_factory=dict)
    degraded: set[str] = field(default_factory=set)
    refusals: Counter[str] = field(default_factory=Counter)
    _run: str = field(default_factory=lambda: secrets.token_hex(4))
    _stopped: bool = False
    _numbers: Iterator[int] = field(default_factory=count)

    async def run(self) -> None:
        await asyncio.gather(*(self._client(place) for place in range(len(self.fronts))))

    def stop(self) -> None:
        self._stopped = True

    async def _client(self, place: int) -> None:
        async with httpx.AsyncClient(timeout=LIMITS) as http:
            while not self._stopped:
                for kind in ("store", "search"):
                    ended, moved = await self._call(http, self.fronts[place], kind)
                    self.seen.calls.append(ended)
                    if moved:
                        place = (place + 1) % len(self.fronts)
                    await asyncio.sleep(FAILED_PAUSE_S if ended.failed else PAUSE_S)

    async def _call(self, http: httpx.AsyncClient, front: str, kind: Kind) -> tuple[Ended, bool]:
        """How it ended, and whether the front could not be reached."""
        number = next(self._numbers)
        user = self.users[number // 2 % len(self.users)]
        text = f"note {number} of {self._run}, kept by {user} while something dies"
        path = "/api/memory/store" if kind == "store" else "/api/memory/search"
        body = {"text": text, "tier": "history"} if kind == "store" else {"query": text, "limit": 5}
        begun, again = time.monotonic(), False
        try:
            async with asyncio.timeout(CALL_TIMEOUT_S):
                answer = await http.post(f"{front}{path}", json=body, headers=self._headers(user))
            how, again = str(answer.status_code), "retry-after" in answer.headers
        except TimeoutError:
            how = "timeout"
        except httpx.ConnectTimeout:
            how = "refused"
        except httpx.TimeoutException:
            how = "timeout"
        except httpx.TransportError as error:
            how = "refused" if isinstance(error, httpx.ConnectError) else "reset"
        ended = Ended(kind, how, begun, time.monotonic(), again)
        if ended.failed and how.isdigit():
            self.refusals[f"{how} {answer.json()['code']}"] += 1
        if not ended.failed and kind == "store":
            memory_id = answer.json()["memory_id"]
            self.seen.acknowledged.append(memory_id)
            self.owners[memory_id] = user
        if not ended.failed and kind == "search":
            self.degraded |= set(answer.json()["degraded"])
        return ended, not how.isdigit()

    def _headers(self, user: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}", "X-User-Id": user}

    async def missing(self) -> list[str]:
        """Ids that were acknowledged and cannot be read, each tried again while nobody answers."""
        async with httpx.AsyncClient(timeout=LIMITS) as http:
            gate = asyncio.Semaphore(8)

            async def look(memory_id: str) -> bool:
                headers = self._headers(self.owners[memory_id])
                async with gate:
                    for tried in range(READ_AGAIN):
                        front = self.fronts[tried % len(self.fronts)]
                        try:
                            path = f"{front}/api/memory/items/{memory_id}"
                            status = (await http.get(path, headers=headers)).status_code
                        except httpx.TransportError:
                            status = 0
                        if status in (200, 404):
                            return status == 200
                        await asyncio.sleep(1.0)
                return False

            found = await asyncio.gather(*map(look, self.seen.acknowledged))
        return [one for one, there in zip(self.seen.acknowledged, found, strict=True) if not there]
