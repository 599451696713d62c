"""`rayapp documents`: give files to the memory of a user."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Unpack

import typer

from rayapp.client.progress import Bar, Progress
from rayapp.core.errors import Conflict, InvalidInput
from rayapp.local.cli.memories import DataDir, KeyFile, User, client_of
from rayapp.local.cli.output import console, shown, table_of

if TYPE_CHECKING:
    from rayapp.client import SyncMemoryClient
    from rayapp.client.books import Described
    from rayapp.wire.books import BookDetail

documents = typer.Typer(no_args_is_help=True, help="Files that can be asked about.")
EXIT_SOME_FAILED = 3
PAGE = 200  # documents that are listed at once


@documents.command()
def add(
    paths: Annotated[list[Path], typer.Argument(help="Files, or folders of them.")],
    title: Annotated[str | None, typer.Option(help="What it is called (one file).")] = None,
    author: Annotated[str | None, typer.Option(help="Who wrote it.")] = None,
    replace: Annotated[
        bool, typer.Option(help="Take the place of the document with this title.")
    ] = False,
    conversation: Annotated[
        str | None, typer.Option(help="Attach them to it; nothing else sees them.")
    ] = None,
    user: User = None,
    data_dir: DataDir = None,
    api_key_file: KeyFile = None,
) -> None:
    """Read files, and wait until they can be asked about; exit code 3 when some could not be."""
    files = list(_files(paths))
    if title is not None and len(files) != 1:
        raise InvalidInput("--title names one document: give one file, or leave it out.")
    failed, names = 0, set[str]()
    with client_of(data_dir, user, api_key_file) as client, Progress(console) as progress:
        for path in files:
            with progress.step(shown(path.name), 0) as bar:
                # Of files with one name, the folder tells them apart.
                called = title or (
                    shown(f"{path.parent.name}/{path.stem}") if path.stem in names else None
                )
                said, done = _added(
                    client,
                    path,
                    bar,
                    title=called,
                    author=author,
                    replace=replace,
                    conversation_id=conversation,
                )
            names.add(path.stem)
            console.print(shown(f"{path}: {said.removeprefix(f'{path} ')}"), soft_wrap=True)
            failed += not done
    if failed:
        raise typer.Exit(EXIT_SOME_FAILED)


@documents.command("list")
def list_documents(
    conversation: Annotated[
        str | None, typer.Option(help="Also what is attached to this conversation.")
    ] = None,
    user: User = None,
    data_dir: DataDir = None,
    api_key_file: KeyFile = None,
) -> None:
    """The documents of a user, newest first."""
    with client_of(data_dir, user, api_key_file) as client:
        page = client.books(limit=PAGE, conversation_id=conversation).books
        found = list(page)
        while len(page) == PAGE:
            page = client.books(limit=PAGE, offset=len(found), conversation_id=conversation).books
            found += page
    table = table_of("id", "title", "state", "passages", "uploaded (UTC)")
    for name in (0, -1):
        table.columns[name].no_wrap = True
    for book in found:
        uploaded = f"{book.upload_timestamp.astimezone(UTC):%Y-%m-%d %H:%M}"
        passages = str(book.processing_stats.total_chunks)
        table.add_row(book.book_id, book.title, book.status, passages, uploaded)
    console.print(table)


@documents.command()
def search(
    query: Annotated[str, typer.Argument(help="A question or words, in Hebrew or English.")],
    document: Annotated[
        list[str] | None, typer.Option(help="Only in the document of this id; repeat it.")
    ] = None,
    author: Annotated[list[str] | None, typer.Option(help="Only of this author.")] = None,
    section: Annotated[list[str] | None, typer.Option(help="Only under this heading.")] = None,
    page: Annotated[int | None, typer.Option(help="Only on this page.")] = None,
    limit: Annotated[int, typer.Option(help="Most passages to show.")] = 5,
    user: User = None,
    data_dir: DataDir = None,
    api_key_file: KeyFile = None,
) -> None:
    """What the documents say, with title, section and page."""
    pages = (page, page) if page is not None else None
    with client_of(data_dir, user, api_key_file) as client:
        found = client.search_books(
            query, book_ids=document, authors=author, sections=section, pages=pages, limit=limit
        )
    for hit in found.results:
        console.print(_place(hit.source.book or {}), style="bold", soft_wrap=True)
        console.print(f"{hit.content}\n", soft_wrap=True)
    if not found.results:
        console.print("Nothing was found: `rayapp documents list` shows what there is.")


@documents.command()
def publish(
    book_ids: Annotated[list[str], typer.Argument(help="Ids of documents of a conversation.")],
    user: User = None,
    data_dir: DataDir = None,
    api_key_file: KeyFile = None,
) -> None:
    """Make books of what is attached to a conversation."""
    with client_of(data_dir, user, api_key_file) as client:
        _each(book_ids, lambda book_id: client.publish_book(book_id).message)


@documents.command()
def delete(
    book_ids: Annotated[list[str], typer.Argument(help="Ids, as `list` shows them.")],
    user: User = None,
    data_dir: DataDir = None,
    api_key_file: KeyFile = None,
) -> None:
    """Take documents away, with all their passages."""
    with client_of(data_dir, user, api_key_file) as client:
        _each(
            book_ids,
            lambda book_id: f"deleted, {client.delete_book(book_id).deleted_chunks} passages.",
        )


def _each(book_ids: list[str], done: Callable[[str], str]) -> None:
    for book_id in book_ids:
        console.print(f"{book_id}: {done(book_id)}", soft_wrap=True)


def _place(book: dict[str, Any]) -> str:
    """Title, section and pages of a passage."""
    pages = book.get("pages") or []
    shown = "-".join(str(one) for one in dict.fromkeys(pages))
    parts = (book.get("title"), book.get("section"), f"p. {shown}" if shown else None)
    return ", ".join(str(part) for part in parts if part)


def _added(
    client: SyncMemoryClient, path: Path, bar: Bar, **described: Unpack[Described]
) -> tuple[str, bool]:
    """What became of a file, and whether it can be asked about."""

    def show(book: BookDetail) -> None:
        stats = book.processing_stats
        bar.at(stats.chunks_processed, stats.total_chunks, book.processingStage)

    try:
        book = client.upload(path, on_progress=show, **described)
    except (Conflict, InvalidInput) as error:
        return error.message, False
    if book.linkedToBookId is not None:
        return f"{book.processingMessage} It is {book.linkedToBookId}.", True
    number = book.processing_stats.total_chunks
    return f"{number} passage{'' if number == 1 else 's'} of {book.title} ({book.id}).", True


def _files(paths: list[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(one for one in path.rglob("*") if one.is_file())
        else:
            yield path
