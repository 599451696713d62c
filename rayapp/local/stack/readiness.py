"""What `/readyz` of a stack says, waiting for it, and one line of `rayapp doctor`."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import httpx

from rayapp.core.errors import ConfigError, DependencyDown

Verdict = Literal["ok", "note", "blocks"]


@dataclass(frozen=True, slots=True)
class Check:
    """`fix` is a command or a setting; empty when all is well."""

    name: str
    verdict: Verdict
    found: str
    fix: str = ""


POLL_S = 0.1
ASK_TIMEOUT_S = 5.0
# A decision: models may come from a cold disk, and a person waits at a terminal.
READY_TIMEOUT_S = 180.0
# The servers that a reason can name retry every few seconds: after this, waiting changes nothing.
SAME_REASONS_S = 45.0
NO_ANSWER = "no answer yet"
# Said while nothing is wrong: they last as long as models load, and name no cause.
STARTING = "starting"
PASSING = ((NO_ANSWER,), (STARTING,))

OnWait = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Readiness:
    """`blocked`: waiting cannot help, a person has to act."""

    ready: bool
    reasons: tuple[str, ...] = ()
    blocked: bool = False


def ask(url: str) -> Readiness:
    """One look; a service that does not answer is not ready."""
    try:
        response = httpx.get(f"{url}/readyz", timeout=ASK_TIMEOUT_S, trust_env=False)
    except (httpx.HTTPError, httpx.InvalidURL):
        return Readiness(False, (NO_ANSWER,))
    if response.status_code == httpx.codes.OK:
        return Readiness(True)
    try:
        body = response.json()
        if body.get("code") == STARTING:
            # HAProxy, which has no replica to ask.
            return Readiness(False, (STARTING,))
        reasons = tuple(str(reason) for reason in body["reasons"])
        return Readiness(False, reasons, bool(body.get("blocked")))
    except (ValueError, KeyError, TypeError, AttributeError):
        # The proxy answers for a replica that is not there: no JSON of ours.
        return Readiness(False, (f"status {response.status_code}",))


def wait_ready(url: str, on_wait: OnWait) -> None:
    """Poll until ready; `on_wait` hears every change of the reasons.

    Raises:
        ConfigError: the service says that a person has to act.
        DependencyDown: the same reasons for `SAME_REASONS_S`, or not ready in `READY_TIMEOUT_S`.
    """
    begun = changed = time.monotonic()
    last: tuple[str, ...] = ()
    while not (found := ask(url)).ready:
        now = time.monotonic()
        if found.blocked:
            raise ConfigError(" ".join(found.reasons))
        if found.reasons != last:
            last, changed = found.reasons, now
            on_wait(" ".join(last))
        limit_s = READY_TIMEOUT_S if last in PASSING else SAME_REASONS_S
        if now - changed > limit_s or now - begun > READY_TIMEOUT_S:
            raise DependencyDown(
                f"{url} is not ready after {now - begun:.0f} s: {' '.join(last)} "
                "See `rayapp status`, `rayapp doctor` and the logs."
            )
        time.sleep(POLL_S)
