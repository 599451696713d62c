"""Client calls about a user's data as a whole: personality, hidden, exports, removal, tokens."""

import io
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, Unpack

from rayapp.client.calls import (
    Reader,
    Talk,
    Writer,
    asked,
    at,
    call,
    check_name,
    form,
    given,
    listed,
    read_file,
)
from rayapp.client.core import Core, asking_for, parse
from rayapp.core.errors import InvalidInput
from rayapp.wire import backup
from rayapp.wire import personality as wire
from rayapp.wire.data import (
    ClearAnswer,
    DataStatsAnswer,
    ErasedAnswer,
    GhostDone,
    GhostsAnswer,
    GhostView,
)
from rayapp.wire.session_tokens import SessionAnswer, SessionEndedAnswer

MEMORY = "/api/memory"
PERSONALITY = f"{MEMORY}/personality"
GHOST = f"{MEMORY}/ghost"
BACKUP = f"{MEMORY}/backup"
SESSION = "/api/auth/session"
# Ends of the files that are read, by source; the images of an export may be some gigabytes.
READ = {
    "mem0": (".json",),
    "chatgpt": (".json",),
    "claude": (".json",),
    "markdown": (".md", ".markdown"),
    "roampal": (".jsonl", ".sqlite3"),
}
# Years that a zip can say.
FIRST, LAST = 1980, 2107


class UserDataCalls(Core):
    """The calls."""

    @call
    def personality(self, **who: Unpack[Reader]) -> Talk[wire.PersonalityAnswer]:
        """The template in use; its `content` is YAML."""
        return self.reading(wire.PersonalityAnswer, PERSONALITY, **who)

    @call
    def save_personality(
        self,
        content: str,
        *,
        name: str | None = None,
        description: str | None = None,
        activate: bool = True,
        **who: Unpack[Writer],
    ) -> Talk[wire.SavedAnswer]:
        """Keep a template, YAML, and use it from the next request on. Raises InvalidInput."""
        body = {"content": content, "name": name, "description": description, "activate": activate}
        return self.writing(wire.SavedAnswer, PERSONALITY, given(body), **who)

    @call
    def use_personality(self, template_id: str, **who: Unpack[Writer]) -> Talk[wire.SavedAnswer]:
        """Use a preset or a template of the user. Raises NotFound."""
        return self.writing(wire.SavedAnswer, PERSONALITY, {"template_id": template_id}, **who)

    @call
    def delete_personality(self, template_id: str, **who: Unpack[Writer]) -> Talk[str]:
        """Remove a template of the user; the active one cannot be removed. Raises Conflict."""
        path = asked(PERSONALITY, id=template_id)
        return (yield from self.writing(wire.DeletedAnswer, path, method="DELETE", **who)).message

    @call
    def presets(self, **who: Unpack[Reader]) -> Talk[tuple[wire.PresetView, ...]]:
        """The templates that can be chosen."""
        found = yield from self.reading(wire.PresetsAnswer, f"{PERSONALITY}/presets", **who)
        return found.presets or ()

    @call
    def personality_prompt(self, lang: str = "en", **who: Unpack[Reader]) -> Talk[str]:
        """The template in use as a text for a system message."""
        path = asked(f"{PERSONALITY}/prompt", lang=lang)
        return (yield from self.reading(wire.PromptAnswer, path, **who)).prompt

    # --- hidden memories and removal

    @call
    def hide(
        self, memory_id: str, *, reason: str = "user_action", **who: Unpack[Writer]
    ) -> Talk[str]:
        """Leave a memory out of everything until it is shown again. Raises NotFound."""
        body = {"memory_id": memory_id, "reason": reason}
        return (yield from self.writing(GhostDone, GHOST, body, **who)).message

    @call
    def unhide(self, memory_id: str, **who: Unpack[Writer]) -> Talk[str]:
        """Show a hidden memory again. Raises NotFound."""
        body = {"memory_id": memory_id}
        return (yield from self.writing(GhostDone, GHOST, body, method="DELETE", **who)).message

    @call
    def hidden(
        self, *, limit: int | None = None, **who: Unpack[Reader]
    ) -> Talk[tuple[GhostView, ...]]:
        """What is hidden, newest first."""
        return (yield from self.reading(GhostsAnswer, asked(GHOST, limit=limit), **who)).memories

    @call
    def data_stats(self, **who: Unpack[Reader]) -> Talk[DataStatsAnswer]:
        """How much there is of each kind."""
        return self.reading(DataStatsAnswer, "/api/data/stats", **who)

    @call
    def clear_data(self, target: str, *, confirm: str, **who: Unpack[Writer]) -> Talk[ClearAnswer]:
        """Remove all of one kind, or `all`, for good; `confirm`: the word DELETE. Call again while
        `remaining` is above 0. Raises InvalidInput: no word, or a conversation is active."""
        path = at("/api/data/clear", target)
        return self.writing(ClearAnswer, path, {"confirm": confirm}, **who)

    @call
    def erase_user(self, *, confirm: str, **who: Unpack[Writer]) -> Talk[ErasedAnswer]:
        """Erase all there is of the user; `confirm`: the word DELETE. Call again while it is not
        `complete`."""
        path = asked("/api/memory/user", confirm=confirm)
        return self.writing(ErasedAnswer, path, method="DELETE", **who)

    @call
    def erase_part(
        self, part: str, id: str, *, confirm: str, **who: Unpack[Writer]
    ) -> Talk[ErasedAnswer]:
        """Erase a conversation, a document, a memory, or all memories about a subject; `confirm`:
        the word DELETE. Call again while it is not `complete`. Raises Conflict."""
        path = asked("/api/memory/user/part", part=part, id=id, confirm=confirm)
        return self.writing(ErasedAnswer, path, method="DELETE", **who)

    # --- session tokens, for browsers

    @call
    def session_token(
        self,
        *,
        seconds: int | None = None,
        scopes: Sequence[Literal["read", "write"]] = (),
        **who: Unpack[Reader],
    ) -> Talk[SessionAnswer]:
        """A short token for the user, which a browser sends in the place of the key. Raises
        Forbidden: tokens are off, or it would cover more than the key."""
        body = given({"seconds": seconds, "scopes": tuple(scopes)})
        return self.reading(SessionAnswer, SESSION, body, **who)

    @call
    def end_session_token(self, token: str) -> Talk[str]:
        """Revoke it. Raises Unauthorized: it is none of this service, or has expired."""
        path, body = SESSION, {"token": token}
        return (yield from self.writing(SessionEndedAnswer, path, body, method="DELETE")).message

    # --- exports

    @call
    def backup_estimate(
        self, *, include: Sequence[str] | None = None, **who: Unpack[Reader]
    ) -> Talk[backup.BackupEstimate]:
        """How much an export holds; `include`: kinds, such as `memories`."""
        path = asked(f"{BACKUP}/estimate", include=_joined(include))
        return self.reading(backup.BackupEstimate, path, **who)

    @call
    def export(
        self, *, include: Sequence[str] | None = None, **who: Unpack[Reader]
    ) -> Talk[dict[str, Any]]:
        """All of the user's data as one document, which `import_` takes back."""
        headers = self.headers_of(who.get("user_id"))
        path = asked(f"{BACKUP}/export", format="json", include=_joined(include))
        found: dict[str, Any] = yield from self.asking(asking_for("GET", path, None, headers))
        return found

    @call
    def import_(
        self,
        payload: Mapping[str, Any],
        *,
        dry_run: bool = False,
        merge: str = "merge",
        map_user: bool = False,
        confirm: str = "",
        **who: Unpack[Writer],
    ) -> Talk[backup.ImportAnswer]:
        """Take an export in; call again while it is not `complete`. `confirm`: the word DELETE,
        where `merge` is `replace`. Raises InvalidInput."""
        body = {"payload": payload, "dryRun": dry_run, "mergeStrategy": merge, "mapUser": map_user}
        body |= {"confirm": confirm}
        return self.writing(backup.ImportAnswer, f"{BACKUP}/import", body, **who)

    @call
    def import_from(
        self, source: str, path: str | Path, *, dry_run: bool = False, user_id: str | None = None
    ) -> Talk[backup.ForeignImportAnswer]:
        """Take in what mem0, chatgpt, claude or roampal exported, or a folder of Markdown files;
        call again while it is not `complete`. Raises InvalidInput, TooLarge."""
        name, data = packed(Path(path), source)
        fields = {"source": source, "dryRun": str(dry_run).lower()}
        request = form(f"{BACKUP}/import-from", name, data, fields, self.headers_of(user_id))
        return parse(backup.ForeignImportAnswer, (yield from self.asking(request)))

    @call
    def restore_export(
        self, payload: Mapping[str, Any], **who: Unpack[Writer]
    ) -> Talk[backup.RestoredExport]:
        """Put an export in the place of all there is, which is exported and kept first."""
        return self.writing(backup.RestoredExport, f"{BACKUP}/restore", {"payload": payload}, **who)

    @call
    def backups(self, **who: Unpack[Reader]) -> Talk[tuple[backup.KeptView, ...]]:
        """The archives that are kept on the server, newest first."""
        return (yield from self.reading(backup.BackupsAnswer, f"{BACKUP}/list", **who)).backups

    @call
    def clean_up_backups(self, keep: int = 7, **who: Unpack[Writer]) -> Talk[tuple[str, ...]]:
        """Remove all but the newest; which went."""
        path = asked(f"{BACKUP}/cleanup", keep=keep)
        return (yield from self.writing(backup.BackupsGone, path, method="DELETE", **who)).removed


def _joined(kinds: Sequence[str] | None) -> str | None:
    return None if kinds is None else ",".join(listed(kinds))


# --- exports of other systems as they are sent: of a zip or a folder only what is read


def packed(path: Path, source: str) -> tuple[str, bytes]:
    """A name and the bytes to send of a file, a zip or a folder. Raises InvalidInput."""
    ends = READ.get(source)
    if ends is None:
        raise InvalidInput(f"source: {source!r} is none of {', '.join(READ)}.")
    if path.is_dir():
        return f"{path.name}.zip", _zipped(_of_folder(path, ends))
    if not zipfile.is_zipfile(path):
        return path.name, read_file(path)
    try:
        with zipfile.ZipFile(path) as found:
            members = [one for one in found.infolist() if one.filename.lower().endswith(ends)]
            if len(members) == len(found.infolist()):
                return path.name, read_file(path)
            return path.name, _zipped((one, found.read(one)) for one in members)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, OSError) as error:
        raise InvalidInput(f"{path} cannot be read ({error}); export it again.") from None


def _of_folder(folder: Path, ends: tuple[str, ...]) -> Iterator[tuple[zipfile.ZipInfo, bytes]]:
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or not path.name.lower().endswith(ends):
            continue
        changed = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        when = changed if FIRST <= changed.year <= LAST else datetime(FIRST, 1, 1, tzinfo=UTC)
        name = path.relative_to(folder).as_posix()
        check_name(name)
        yield zipfile.ZipInfo(name, when.timetuple()[:6]), read_file(path)


def _zipped(files: Iterator[tuple[zipfile.ZipInfo, bytes]]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for info, data in files:
            made.writestr(info, data, zipfile.ZIP_DEFLATED)
    return out.getvalue()
