"""Requests to addresses that users chose: to public ones, and to the one that was looked up."""

import asyncio
import socket
import time
from collections.abc import Mapping

import httpx

from rayapp.admin.webhooks.records import Reply
from rayapp.admin.webhooks.rules import checked_url, is_public, refuse_private
from rayapp.core.errors import InvalidInput


class HttpWebhookSender:
    """Implements `admin.webhooks.ports.WebhookSender`.

    A name is looked up once and the request goes to that address: a second look could lead
    elsewhere. Certificates are checked against the name. No connection is kept, because another
    name may have the same address.
    """

    def __init__(self, *, allow_private: bool, timeout_s: float) -> None:
        self._allow_private = allow_private
        self._timeout_s = timeout_s
        self._client = httpx.AsyncClient(
            timeout=httpx.Timeout(timeout_s),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=0),
            follow_redirects=False,
            trust_env=False,
        )

    async def check(self, host: str, port: int) -> None:
        await self._address(host, port)

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> Reply:
        began = time.perf_counter()
        status: int | None = None
        error: str | None = None
        try:
            async with asyncio.timeout(self._timeout_s):
                status = await self._posted(url, headers, body)
            if not 200 <= status < 300:
                error = f"The program answered with status {status}."
        except InvalidInput as refused:
            error = refused.message
        except TimeoutError:
            error = f"There was no answer within {self._timeout_s:g} s."
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as failure:
            error = f"There was no answer ({type(failure).__name__})."
        return Reply(round((time.perf_counter() - began) * 1000, 1), status, error)

    async def close(self) -> None:
        await self._client.aclose()

    async def _posted(self, url: str, headers: Mapping[str, str], body: bytes) -> int:
        wanted = httpx.URL(url)
        address = await self._address(*checked_url(url))
        request = self._client.stream(
            "POST",
            wanted.copy_with(host=address),
            headers={**headers, "host": wanted.netloc.decode("ascii")},
            content=body,
            extensions={"sni_hostname": wanted.raw_host.decode("ascii")},
        )
        # What it says beside the status is not read.
        async with request as response:
            return response.status_code

    async def _address(self, host: str, port: int) -> str:
        try:
            found = await asyncio.get_running_loop().getaddrinfo(
                host, port, type=socket.SOCK_STREAM
            )
        except (OSError, UnicodeError):
            found = []
        addresses = [str(one[4][0]) for one in found]
        refuse_private({one: self._allow_private or is_public(one) for one in addresses}, host)
        return addresses[0]
