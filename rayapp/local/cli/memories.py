"""`rayapp add`, `search`, `recent`, `retention`: on the stack of a data directory."""

import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import orjson
import typer
from pydantic import ValidationError

from rayapp.client import Memory, SyncMemoryClient
from rayapp.client.calls import explained
from rayapp.client.discovery import key_advice, read_key
from rayapp.core.errors import ConfigError, Forbidden, Unauthorized
from rayapp.core.settings.load import load_settings
from rayapp.core.settings.model import Settings
from rayapp.local.cli.output import console, table_of
from rayapp.local.stack import stack
from rayapp.memory.tiers import TIER_POLICY, Tier, parse_tier
from rayapp.wire.bases import CONFIRM

DataDir = Annotated[Path | None, typer.Option(help="Data directory (default: .rayapp).")]
User = Annotated[str | None, typer.Option(help="Whose memories (default: the service's user).")]
KeyFile = Annotated[
    Path | None, typer.Option("--api-key-file", help="File with a key, where keys are required.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the answer as one line of JSON.")]
LIMIT = 5
# The memory bank takes no fact without them.
BANK_TAGS, BANK_IMPORTANCE, BANK_CONFIDENCE = ("note",), 0.7, 0.7


def add(
    text: Annotated[str, typer.Argument(help="What to remember.")],
    tier: Annotated[str, typer.Option(help="Tier to keep it in.")] = Tier.HISTORY.value,
    tag: Annotated[
        list[str] | None, typer.Option(help="A tag; repeat it (memory_bank: note).")
    ] = None,
    importance: Annotated[
        float | None, typer.Option(help=f"0 to 1 (memory_bank: {BANK_IMPORTANCE}).")
    ] = None,
    confidence: Annotated[
        float | None, typer.Option(help=f"0 to 1 (memory_bank: {BANK_CONFIDENCE}).")
    ] = None,
    user: User = None,
    data_dir: DataDir = None,
    api_key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Store one memory; it is found at once."""
    given = {"tags": tuple(tag or ()), "importance": importance, "confidence": confidence}
    try:
        memory = Memory.model_validate({"text": text, "tier": tier, **given})
    except ValidationError as error:
        from rayapp.api.errors import invalid  # the web framework, which `up` does not need

        raise invalid(error) from None
    with client_of(data_dir, user, api_key_file) as client:
        reply = client.store(with_bank_defaults(memory))
        stored = reply.status == "stored" and not as_json
        name = tier_told(client, reply.memory_id, tier) if stored else tier
    if as_json:
        typer.echo(reply.model_dump_json())
    elif reply.status == "duplicate":
        console.print(f"It was there already: {reply.memory_id}.")
    else:
        console.print(f"Stored in {name}{kept_for(name)}: {reply.memory_id}.")


def search(
    query: Annotated[str, typer.Argument(help="A question or words, in Hebrew or English.")],
    tier: Annotated[list[str] | None, typer.Option(help="Only this tier; repeat it.")] = None,
    limit: Annotated[int, typer.Option(help="Most memories to show.")] = LIMIT,
    user: User = None,
    data_dir: DataDir = None,
    api_key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """Search the memories of a user."""
    from rayapp.local.demo.table import hit_table  # numpy, which `up` does not need

    with client_of(data_dir, user, api_key_file) as client:
        reply = client.search(query, limit=limit, tiers=tier or None)
    if as_json:
        typer.echo(reply.model_dump_json())
        return
    if reply.results:
        console.print(hit_table(reply.results))
    else:
        console.print("Nothing was found: `rayapp recent` shows what is there.")
    for line in explained(reply.degraded):
        console.print(line, style="yellow", soft_wrap=True)
    if reply.results:
        found = len(reply.results)
        console.print(f"{found} memor{'y' if found == 1 else 'ies'} in {reply.elapsed_ms:.1f} ms.")


def recent(
    tier: Annotated[str | None, typer.Option(help="Only this tier.")] = None,
    limit: Annotated[int, typer.Option(help="Most memories to show.")] = LIMIT,
    user: User = None,
    data_dir: DataDir = None,
    api_key_file: KeyFile = None,
    as_json: AsJson = False,
) -> None:
    """The newest memories of a user."""
    from rayapp.local.demo.table import recent_table  # numpy, which `up` does not need

    with client_of(data_dir, user, api_key_file) as client:
        memories = client.recent(limit=limit, tiers=tier)
    if as_json:
        typer.echo(orjson.dumps([memory.model_dump(mode="json") for memory in memories]))
    elif memories:
        console.print(recent_table(memories))
    else:
        console.print("Nothing is stored yet: `rayapp add TEXT` stores a memory.")


def retention(
    run: Annotated[
        str | None,
        typer.Option(metavar=CONFIRM, help=f"Delete it now; type {CONFIRM}. Else nothing goes."),
    ] = None,
    data_dir: DataDir = None,
    api_key_file: KeyFile = None,
) -> None:
    """What would go by the limits of `retention` in the settings."""
    with client_of(data_dir, None, api_key_file) as client:
        ops = client.ops
        found = ops.retention() if run is None else ops.run_retention(confirm=run)
    if not found.limits:
        console.print("Nothing goes by itself: set `retention.history_days` or another of them.")
        return
    table = table_of("kind", "changed before", "due", "removed")
    for one in found.limits:
        table.add_row(one.kind, f"{one.before:%Y-%m-%d %H:%M}", str(one.due), str(one.removed))
    console.print(table)
    if found.held:
        console.print(f"Held, so nothing of theirs goes: {', '.join(found.held)}")
    if not found.complete:
        console.print("The time was up; run it again for the rest.")


def settings_in(data_dir: Path | None, profile: str | None = None) -> Settings:
    """Those of the environment, for this data directory."""
    return load_settings(profile, overrides={"data": {"dir": data_dir}} if data_dir else None)


@contextmanager
def client_of(
    data_dir: Path | None, user: str | None, key_file: Path | None
) -> Iterator[SyncMemoryClient]:
    """The running stack's API.

    Raises ConfigError: no stack runs, a key is asked for and none was given, or it cannot be read.
    """
    url = stack.url_of(settings_in(data_dir).data.dir)
    try:
        with SyncMemoryClient(url, user_id=user, api_key=read_key(key_file)) as client:
            yield client
    except Unauthorized:
        if key_file is not None:
            raise
        whose = user or "USER"
        raise ConfigError(key_advice(f"{whose} --user {whose}", shared_options(data_dir))) from None


def with_bank_defaults(memory: Memory) -> Memory:
    """`memory`, with what the memory bank asks for where it is missing."""
    if parse_tier(memory.tier) is not Tier.MEMORY_BANK:
        return memory
    change = {
        "tags": memory.tags or BANK_TAGS,
        "importance": BANK_IMPORTANCE if memory.importance is None else memory.importance,
        "confidence": BANK_CONFIDENCE if memory.confidence is None else memory.confidence,
    }
    return memory.model_copy(update=change)


def tier_told(client: SyncMemoryClient, memory_id: str | None, asked: str) -> str:
    """What the service calls the tier; a key that may not read hears what it asked for."""
    try:
        return str(client.item(memory_id).tier) if memory_id else asked
    except Forbidden:
        return asked


def kept_for(tier: str) -> str:
    """How long a memory of that tier lives, as the end of a sentence."""
    known = parse_tier(tier)
    hours = TIER_POLICY[known].ttl_hours if known else None
    if hours is None:
        return ""
    left = timedelta(hours=hours)
    return f" for {f'{left.days} days' if left.days > 1 else f'{hours} hours'}"


def typed_command() -> str:
    """How this program was called, so that printed commands can be typed as they are."""
    name = sys.argv[0]
    if Path(name).name != "rayapp":
        return shlex.join([sys.executable, "-m", "rayapp.local.cli.app"])
    on_path = shutil.which("rayapp")
    return "rayapp" if on_path == name else shlex.quote(name)


def shared_options(data_dir: Path | None, key_file: Path | None = None) -> str:
    """The options of a call that its next calls need too."""
    given = {"--data-dir": data_dir, "--api-key-file": key_file}
    return shlex.join([part for name, at in given.items() if at for part in (name, str(at))])
