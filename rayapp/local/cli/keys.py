"""`rayapp keys`: make, list and revoke API keys in the database of the stack."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from rayapp.core.errors import ConfigError
from rayapp.core.settings.model import Settings
from rayapp.local.cli.memories import DataDir, settings_in
from rayapp.local.cli.output import console, table_of
from rayapp.local.stack.stack import attach

if TYPE_CHECKING:
    from rayapp.admin.api_keys import ApiKeyService
    from rayapp.admin.ports import ApiKey, Scope

keys = typer.Typer(no_args_is_help=True, help="API keys: random, shown once, stored as a hash.")
T = TypeVar("T")

Org = Annotated[str | None, typer.Option(help="Tenant that it belongs to (default: none).")]
Scopes = Annotated[list[str], typer.Option("--scope", help="read, write or admin; repeat it.")]


@keys.command()
def create(
    principal: Annotated[str, typer.Argument(help="Who uses the key.")],
    user: Annotated[str | None, typer.Option(help="User whose memories it opens.")] = None,
    org: Org = None,
    scope: Scopes = ["read", "write"],  # noqa: B006 - typer reads the default, nobody changes it
    name: Annotated[str, typer.Option(help="What it is for.")] = "",
    days: Annotated[int | None, typer.Option(min=1, help="Ends after so many days.")] = None,
    data_dir: DataDir = None,
) -> None:
    """Make a key and print it once."""
    until = None if days is None else datetime.now(UTC) + timedelta(days=days)

    async def work(service: ApiKeyService) -> str:
        scopes: list[Scope] = [_scope(name) for name in scope]
        secret, _ = await service.create(
            principal, user_id=user, scopes=scopes, org_id=org, name=name, expires_at=until
        )
        return secret

    # Plain text on its own line, so that a shell can capture it.
    typer.echo(_with_service(data_dir, work))


@keys.command("list")
def list_keys(data_dir: DataDir = None) -> None:
    """Every key's owner, scopes and dates; the keys themselves are not kept."""
    default_user = _settings(data_dir).auth.default_user
    dates = ("created", "last used", "expires", "revoked")
    table = table_of("id", "name", "principal", "tenant", "user", "scopes", *dates)
    for row in _with_service(data_dir, lambda service: service.all()):
        moments = (row.created_at, row.last_used_at, row.expires_at, row.revoked_at)
        table.add_row(
            row.key_id,
            row.name,
            row.principal,
            row.org_id or "",
            user_of(row, default_user),
            " ".join(sorted(row.scopes)),
            *(at.isoformat(timespec="seconds") if at else "" for at in moments),
        )
    console.print(table)


def user_of(row: ApiKey, default_user: str) -> str:
    """Whose memories the key opens; an admin key may name any user, and else acts for one."""
    own = row.user_id or default_user
    return f"any (default {own})" if "admin" in row.scopes else own


def has_living_key(data_dir: Path | None) -> bool:
    """True when some key of the database opens something. Raises StoreDown."""
    now = datetime.now(UTC)
    return any(row.living_at(now) for row in _with_service(data_dir, lambda s: s.all()))


@keys.command()
def revoke(principal: str, org: Org = None, data_dir: DataDir = None) -> None:
    """End all keys of a principal in a tenant; replicas forget them within `auth.cache_s`."""
    count = _with_service(data_dir, lambda service: service.revoke(principal, org_id=org))
    cache_s = _settings(data_dir).auth.cache_s
    console.print(
        f"Revoked {count} key{'' if count == 1 else 's'} of {principal}; running replicas stop "
        f"accepting {'it' if count == 1 else 'them'} within {cache_s:g} s (auth.cache_s)."
    )


def _scope(name: str) -> Scope:
    if name not in ("read", "write", "admin"):
        raise ConfigError(f"No scope {name!r}: use read, write or admin.")
    return name  # type: ignore[return-value]  # narrowed by the check above


def _with_service(data_dir: Path | None, work: Callable[[ApiKeyService], Awaitable[T]]) -> T:
    settings = _settings(data_dir)

    async def run() -> T:
        # Imported here: `up` and `down` do not need the whole service.
        from rayapp.admin.api_keys import ApiKeyService
        from rayapp.container.bootstrap import Stores
        from rayapp.core.runtime import SystemClock

        stores = Stores(settings)
        await stores.items.ensure_schema()
        service = ApiKeyService(stores.api_keys, clock=SystemClock(), cache_s=0)
        return await work(service)

    return asyncio.run(run())


def _settings(data_dir: Path | None) -> Settings:
    """Those of the environment when they name a database, else those of the running stack."""
    settings = settings_in(data_dir)
    return settings if settings.mongo.uri else attach(settings.data.dir)
