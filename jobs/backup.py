"""Backups of the whole store.

    python -m jobs.backup create|list|verify|restore|cleanup [NAME] [--to PLACE] [--data-dir DIR]
    python -m jobs.backup keygen FILE

`create` writes one file of all collections as they stand at one moment, into a folder or to an
address such as s3://bucket/path; with a key of age, encrypted; with `--user-keys PLACE`, the rows
of each user under a key of theirs, which an erasure removes. `verify` restores a backup into a
scratch database, compares counts and hashes, and looks for 200 memories by their words. `restore`
puts one into the empty database of a stack that runs, or with `--replace DELETE` into the place of
all there is; the index is built anew from it in the background. Without a name the newest backup is
taken. Exit codes: 0 done, 2 bad arguments or a backup that is none, 3 stopped, 4 MongoDB or the
place of backups is away.
"""

import argparse
import asyncio
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from jobs.frame import attached
from rayapp.bulk.rules import EXIT_BAD_ARGUMENTS, EXIT_DEPENDENCY, EXIT_DONE, EXIT_INCOMPLETE
from rayapp.client.discovery import data_dir_of
from rayapp.core.errors import DependencyDown, InvalidInput, NotFound, RayappError
from rayapp.core.runtime import SystemClock
from rayapp.core.settings.load import load_settings
from rayapp.core.settings.model import Settings
from rayapp.local.cli.output import report_console
from rayapp.local.stack import stack
from rayapp.portability.backup import BackupService, Restored, stored_in
from rayapp.portability.encryption import BackupKeys, new_key
from rayapp.portability.ports import KeptArchive
from rayapp.storage.backup_files import open_backups
from rayapp.storage.mongo.backup import MongoBackups
from rayapp.storage.mongo.database import MongoDatabase
from rayapp.storage.mongo.jobs import MongoJobStore
from rayapp.storage.mongo.memory_store import MongoMemoryStore

DOES = ("create", "list", "verify", "restore", "cleanup", "keygen")
CONFIRM = "DELETE"


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="backup", description="Backups of the whole store.")
    made.add_argument("what", choices=DOES)
    made.add_argument("name", nargs="?", help="Of a backup (else the newest); of the new key file.")
    made.add_argument("--data-dir", type=Path, help="Stack to attach to.")
    place = "Folder or address of backups; else backup.url, or the folder of the settings."
    made.add_argument("--to", "--dir", dest="place", metavar="PLACE", help=place)
    made.add_argument("--recipient", help="Public key to encrypt for; else backup.recipient.")
    made.add_argument("--key-file", type=Path, help="Secret key; else backup.key_file.")
    made.add_argument("--user-keys", help="Place of the keys of users; else backup.user_keys.")
    made.add_argument("--keep", type=int, help="cleanup: the newest so many; else backup.keep.")
    made.add_argument("--replace", metavar=CONFIRM, help="restore: everything there is goes first.")
    return made


def main(argv: Sequence[str] | None = None) -> int:
    console = report_console()
    try:
        options = parser().parse_args(argv)
        if options.what == "keygen":
            return _keygen(options.name, console)
        if options.keep is not None and options.keep < 1:
            raise InvalidInput("--keep counts the backups that stay: use 1 or more.")
        return asyncio.run(_run(options, settings_of(options), console))
    except (KeyboardInterrupt, asyncio.CancelledError):
        console.print(f"`{options.what}` was stopped before its end: run it again.")
        return EXIT_INCOMPLETE
    except RayappError as error:
        console.print(error.message)
        return EXIT_DEPENDENCY if isinstance(error, DependencyDown) else EXIT_BAD_ARGUMENTS
    except OSError as error:
        if error.errno is None:  # of no file: a defect
            raise
        where = error.filename or "The place of backups"
        console.print(f"{where} cannot be used ({error.strerror}): name another place.")
        return EXIT_BAD_ARGUMENTS


def settings_of(options: argparse.Namespace) -> Settings:
    """Those of the stack; what is in a place of backups can be seen without one."""
    folder: Path | None = options.data_dir
    if options.what != "list" or stack.is_running(data_dir_of(folder)):
        return attached(folder)
    return load_settings(overrides={"data": {"dir": folder}} if folder else None)


async def _run(options: argparse.Namespace, settings: Settings, console: Console) -> int:
    backup = settings.backup
    # As Ctrl-C does, it ends what waits here: a database of `verify` goes before the process.
    task = asyncio.current_task()
    if task is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    files = open_backups(options.place or backup.place_in(settings.data.dir))
    keys = BackupKeys(options.recipient or backup.recipient, options.key_file or backup.key_file)
    if options.what == "list":
        console.print(f"{_listed(stored_in(files))} ({files.where})")
        return EXIT_DONE
    database = MongoBackups(settings.mongo)
    place = options.user_keys or backup.user_keys
    key_place = open_backups(place) if place else None
    service = BackupService(database, files, SystemClock(), keys, key_place)
    begun = time.monotonic()
    try:
        said = await _do(options, settings, service)
    finally:
        await database.close()
    console.print(f"{said} ({time.monotonic() - begun:.1f} s, {files.where})")
    return EXIT_DONE


async def _do(options: argparse.Namespace, settings: Settings, service: BackupService) -> str:
    if options.what == "create":
        made, manifest = await service.create()
        return f"{made.name}: {manifest.rows:,} rows, {made.bytes:,} bytes"
    if options.what == "cleanup":
        keep = settings.backup.keep if options.keep is None else options.keep
        said = f"{len(service.cleanup(keep))} backups removed, {len(service.kept())} kept"
        try:
            left = await service.drop_left()
        except RayappError as error:  # what went, went
            return f"{said}; databases of `verify` were not looked for: {error.message}"
        return f"{said}, {len(left)} databases of `verify` dropped" if left else said
    name = options.name or _newest(service)
    if options.what == "verify":
        seen = await service.verify(name)
        rows = f"{seen.restored.rows:,} rows came back as they were"
        found = f"{seen.searches} memories were found by their words"
        return f"{name} is whole: {rows}, {found}{_left_out(seen.restored)}"
    if options.replace not in (None, CONFIRM):
        raise InvalidInput(f"--replace removes everything there is; type {CONFIRM} after it.")
    back = await service.restore(name, replace=options.replace == CONFIRM)
    waiting = await _mark_restored(settings)
    said = f"{name}: {back.rows:,} rows are back, {waiting:,} memories wait for the index"
    said += _left_out(back)
    # Its replicas hold users as they were, and no note tells them.
    return f"{said}; start the service anew" if options.replace else said


def _listed(kept: Sequence[KeptArchive]) -> str:
    lines = [f"{one.name}  {one.bytes:,} bytes" for one in kept]
    return "\n".join([*lines, f"{len(lines)} backups"])


def _left_out(restored: Restored) -> str:
    gone = restored.unreadable
    return f"; {gone:,} rows of users who were erased since are unreadable" if gone else ""


def _keygen(name: str | None, console: Console) -> int:
    if not name:
        raise InvalidInput("keygen: name the file for the new key.")
    console.print(f"public key: {new_key(Path(name))}")
    console.print(f"Keep {name} where the backups are not: without it nobody can read them.")
    return EXIT_DONE


def _newest(service: BackupService) -> str:
    kept = service.kept()
    if not kept:
        raise NotFound("There is no backup here; make one with `create`, or name its folder.")
    return kept[0].name


async def _mark_restored(settings: Settings) -> int:
    """How many memories wait for the index."""
    database = MongoDatabase(settings.mongo)
    try:
        await MongoJobStore(database).mark_restored()
        return await MongoMemoryStore(database).mark_restored()
    finally:
        await database.close()


if __name__ == "__main__":
    sys.exit(main())
