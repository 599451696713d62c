"""Rows of each user under a key of their own, so that an erasure reaches older backups too.

AES-256-GCM (`cryptography`). A key is kept in the database, in a collection that no backup holds,
and in one file elsewhere, which is written anew as a whole: whose key is gone is in neither.
"""

import asyncio
import os
import struct
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Literal, Protocol
from uuid import uuid4

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rayapp.portability.archive import ZIP_LEVEL
from rayapp.portability.encryption import BackupKeys
from rayapp.portability.files import Files
from rayapp.portability.rules.archive import BadArchive

ID_BYTES, SECRET_BYTES, NONCE_BYTES = 16, 32, 12
# Before what is sealed: bytes of the whole block, id of the key, rows. All of it is authenticated.
HEAD = struct.Struct(f"<I{ID_BYTES}sI")
LENGTH_BYTES = 4
# Of a document or a block: a page of rows, and one document more (16 MB).
MAX_PIECE_BYTES = 32 << 20
KEY_FILE = "rayapp-user-keys-{}.keys"
AGE_HEAD = b"age-encryption.org/"


class UserKey(BaseModel):
    """`user_id`: the owner id, empty for rows of nobody; a backup names the key alone."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, ser_json_bytes="hex", val_json_bytes="hex"
    )
    key_id: bytes = Field(min_length=ID_BYTES, max_length=ID_BYTES)
    user_id: str
    secret: bytes = Field(min_length=SECRET_BYTES, max_length=SECRET_BYTES)


class KeyList(BaseModel):
    """The file of the keys."""

    model_config = ConfigDict(extra="forbid")
    format: Literal["rayapp-user-keys"] = "rayapp-user-keys"
    version: Literal[1] = 1
    keys: list[UserKey]


class UserKeyStore(Protocol):
    """Of one database; an erasure removes the keys of its user."""

    async def owners(self) -> set[str]:
        """Whose rows there are; empty: nobody's."""

    async def all(self) -> list[UserKey]: ...
    async def files(self) -> list[str]:
        """Ids of the files that this database writes; their keys are all here, or were erased."""

    async def add(self, keys: Sequence[UserKey], file_id: str) -> None:
        """Durable when it returns; the file is known after its keys are."""

    async def drop(self, key_ids: Collection[bytes]) -> None: ...


def new_user_key(user_id: str) -> UserKey:
    secret = AESGCM.generate_key(8 * SECRET_BYTES)
    return UserKey(key_id=uuid4().bytes, user_id=user_id, secret=secret)


def seal_rows(
    collection: str, rows: Iterable[tuple[str, bytes]], keys: Mapping[str, UserKey]
) -> tuple[bytes, int]:
    """Blocks of one user each, of rows with their owners that stand together; how many rows are in
    them. Rows of users without a key are left out: they came after the keys were made."""
    blocks, count = [], 0
    for owner, group in groupby(rows, itemgetter(0)):
        if (key := keys.get(owner)) is not None:
            documents = [row for _, row in group]
            blocks.append(_block(collection, documents, key))
            count += len(documents)
    return b"".join(blocks), count


def _block(collection: str, rows: Sequence[bytes], key: UserKey) -> bytes:
    packed, nonce = zlib.compress(b"".join(rows), ZIP_LEVEL), os.urandom(NONCE_BYTES)
    size = HEAD.size + NONCE_BYTES + len(packed) + 16  # its tag
    head = HEAD.pack(size, key.key_id, len(rows))
    return head + nonce + AESGCM(key.secret).encrypt(nonce, packed, head + collection.encode())


def open_rows(
    collection: str, block: bytes, secrets: Mapping[bytes, bytes]
) -> tuple[list[bytes], int]:
    """The rows, or none and how many nobody can read because their key is gone. Raises ValueError:
    it is broken."""
    if len(block) < HEAD.size + NONCE_BYTES:
        raise ValueError("too short")
    head, sealed = block[: HEAD.size], block[HEAD.size :]
    _, key_id, count = HEAD.unpack(head)
    if (secret := secrets.get(key_id)) is None:
        return [], count
    nonce, sealed = sealed[:NONCE_BYTES], sealed[NONCE_BYTES:]
    try:
        packed = AESGCM(secret).decrypt(nonce, sealed, head + collection.encode())
        rows = list(_split(zlib.decompress(packed)))
    except (InvalidTag, zlib.error):
        raise ValueError("not what was sealed") from None
    if len(rows) != count:
        raise ValueError("another number of rows")
    return rows, 0


def _split(data: bytes) -> Iterator[bytes]:
    """BSON documents: each begins with its length."""
    at = 0
    while at < len(data):
        size = int.from_bytes(data[at : at + LENGTH_BYTES], "little")
        if size <= LENGTH_BYTES:
            raise ValueError("a row without a length")
        yield data[at : at + size]
        at += size


@dataclass(frozen=True, slots=True)
class KeysWritten:
    """Ids of keys, and the files with them by name and bytes: one that another process wrote, with
    a key that was erased since, has another length (encrypted, but once in some thousand times:
    age adds a few bytes by chance)."""

    ids: frozenset[bytes]
    files: frozenset[tuple[str, int]]


def _sizes(place: Files, file_ids: Collection[str]) -> frozenset[tuple[str, int]]:
    names = {KEY_FILE.format(one) for one in file_ids}
    return frozenset(one for one in place.listed() if one[0] in names)


class UserKeys:
    """The keys of users, in the database and in their file.

    Args:
        place: where the file lies; None: rows are not sealed, and keys are only read.
    """

    def __init__(self, store: UserKeyStore, place: Files | None, keys: BackupKeys) -> None:
        self._store, self._place, self._keys = store, place, keys

    @property
    def seals(self) -> bool:
        return self._place is not None

    async def prepare(self) -> tuple[str, dict[str, UserKey]]:
        """The id of their file, and a key for everybody who has rows, by user. All are durable."""
        known = sorted(await self._store.all(), key=lambda one: one.key_id, reverse=True)
        keys = {one.user_id: one for one in known}
        files = await self._store.files()
        file_id = min(files, default=uuid4().hex)
        new = {user: new_user_key(user) for user in await self._store.owners() - keys.keys()}
        await self._store.add(list(new.values()), file_id)
        if new:  # who was erased meanwhile may have been so before the key came
            gone = new.keys() - await self._store.owners()
            await self._store.drop([new.pop(user).key_id for user in gone])
        return file_id, keys | new

    async def write(self, known: KeysWritten | None = None) -> KeysWritten:
        """Write their files anew until they hold what the database holds.

        Args:
            known: what this process wrote last: while it stands there, the files are left.
        """
        if self._place is None:
            return KeysWritten(frozenset(), frozenset())
        # Looked at again after each time: another process may have written an older state over it.
        while True:
            keys, files = await self._store.all(), await self._store.files()
            ids = frozenset(one.key_id for one in keys)
            found = KeysWritten(ids, await asyncio.to_thread(_sizes, self._place, files))
            if found == known:
                return found
            for file_id in files:
                await asyncio.to_thread(self._write, self._place, file_id, keys)
            known = KeysWritten(ids, await asyncio.to_thread(_sizes, self._place, files))

    async def find(self, file_id: str) -> tuple[list[UserKey], bool]:
        """All keys that this database has, if it writes the file; else those of the file; whether
        they come from there. Raises BadArchive: there is none."""
        if file_id in await self._store.files():
            return await self._store.all(), False
        return await asyncio.to_thread(self._read, file_id), True

    async def adopt(self, keys: Sequence[UserKey], file_id: str) -> None:
        """From now on this database writes the file, and an erasure here reaches its keys."""
        await self._store.add(keys, file_id)

    def _write(self, place: Files, file_id: str, keys: list[UserKey]) -> None:
        data = KeyList(keys=keys).model_dump_json().encode()
        with place.writing(KEY_FILE.format(file_id)) as target:
            if not self._keys.encrypts:
                target.write(data)
                return
            with self._keys.sealed(target) as encrypted:
                encrypted.write(data)

    def _read(self, file_id: str) -> list[UserKey]:
        name = KEY_FILE.format(file_id)
        if self._place is None or name not in {one for one, _ in self._place.listed()}:
            where = "" if self._place is None else f" in {self._place.where}"
            raise BadArchive(
                f"The rows of users in this backup are sealed, and there is no file {name}{where}: "
                "name its folder or address with --user-keys (or backup.user_keys), then repeat."
            )
        with self._place.reading(name) as file:
            encrypted = file.read(len(AGE_HEAD)) == AGE_HEAD
            file.seek(0)
            if encrypted:
                with self._keys.opened(file, name) as plain:
                    data = plain.read()
            else:
                data = file.read()
        try:
            return KeyList.model_validate_json(data).keys
        except ValidationError:
            raise BadArchive(f"{name} in {self._place.where} is broken.") from None
