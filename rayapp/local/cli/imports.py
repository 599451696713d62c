"""`rayapp import`: take in what another system exported."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rayapp.client.progress import Progress
from rayapp.core.errors import InvalidInput
from rayapp.local.cli.memories import DataDir, KeyFile, User, client_of
from rayapp.local.cli.output import console, shown, table_of

if TYPE_CHECKING:
    from rayapp.wire.backup import ForeignImportAnswer

SOURCES = "mem0, chatgpt, claude, markdown or roampal"


def import_(
    path: Annotated[Path, typer.Argument(help="Its zip or JSON file, or a folder of files.")],
    source: Annotated[str, typer.Option("--from", help=f"{SOURCES}.")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would come, and what would not.")
    ] = False,
    user: User = None,
    data_dir: DataDir = None,
    api_key_file: KeyFile = None,
) -> None:
    """Take in memories and conversations of another system; again adds nothing."""
    if not path.exists():
        raise InvalidInput(f"{path} is not there: give the file or folder of the export.")
    with (
        client_of(data_dir, user, api_key_file) as client,
        Progress(console) as progress,
        progress.step(shown(path.name), 0) as bar,
    ):
        while True:
            done = client.import_from(source, path, dry_run=dry_run)
            bar.at(_rows(done), _expected(done), "dry run" if dry_run else "import")
            if done.complete:
                break
    _show(done)


def _rows(done: ForeignImportAnswer) -> int:
    return sum(one.added + one.present + one.same_text for one in done.collections.values())


def _expected(done: ForeignImportAnswer) -> int:
    """Rows of the file: a turn is a memory too, and a conversation a row."""
    return sum(done.found.values()) + done.found.get("turns", 0)


def _show(done: ForeignImportAnswer) -> None:
    table = table_of("in the file", "number")
    for name, count in done.found.items():
        table.add_row(name, f"{count:,}")
    console.print(table)
    for one in done.not_taken:
        console.print(f"left out: {one.count:,} {one.what}: {one.why}", soft_wrap=True)
    same = sum(one.same_text for one in done.collections.values())
    if same:
        console.print(f"left out: {same:,} memory: another memory says the same", soft_wrap=True)
    console.print(done.message, soft_wrap=True)
