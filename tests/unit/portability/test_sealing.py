"""Rows of each user under a key of their own, and the file of those keys."""

from pathlib import Path

import bson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayapp.portability.encryption import BackupKeys, new_key
from rayapp.portability.rules.archive import BadArchive
from rayapp.portability.sealing import LENGTH_BYTES, UserKeys, new_user_key, open_rows, seal_rows
from rayapp.storage.backup_files import FolderBackups
from tests.support.examples import examples
from tests.support.stores.user_keys import InMemoryUserKeys

USERS = ("dana", "דנה", "")
KEYS = {user: new_user_key(user) for user in USERS}
SECRETS = {key.key_id: key.secret for key in KEYS.values()}


def blocks_of(data: bytes) -> list[bytes]:
    found = []
    while data:
        size = int.from_bytes(data[:LENGTH_BYTES], "little")
        found, data = [*found, data[:size]], data[size:]
    return found


@settings(max_examples=examples(100))
@given(st.lists(st.tuples(st.sampled_from((*USERS, "later")), st.text(max_size=50))))
def test_rows_come_back_for_who_has_the_keys(texts: list[tuple[str, str]]) -> None:
    rows = [(user, bson.encode({"text": text})) for user, text in sorted(texts)]
    data, count = seal_rows("events", rows, KEYS)
    known = [(user, row) for user, row in rows if user in KEYS]
    assert count == len(known)
    blocks = blocks_of(data)
    assert len(blocks) == len({user for user, _ in known})
    opened = [row for one in blocks for row in open_rows("events", one, SECRETS)[0]]
    assert opened == [row for _, row in known]
    gone = {key: secret for key, secret in SECRETS.items() if key != KEYS["dana"].key_id}
    found = [open_rows("events", one, gone) for one in blocks]
    assert sum(unreadable for _, unreadable in found) == sum(user == "dana" for user, _ in known)
    assert [row for some, _ in found for row in some] == [
        row for user, row in known if user != "dana"
    ]


def test_what_was_changed_is_refused() -> None:
    rows = [("dana", bson.encode({"text": "Haifa"})), ("dana", bson.encode({"text": "חיפה"}))]
    block, _ = seal_rows("events", rows, KEYS)
    assert open_rows("events", block, SECRETS) == ([row for _, row in rows], 0)
    with pytest.raises(ValueError, match="not what was sealed"):
        open_rows("sessions", block, SECRETS)
    foreign = dict.fromkeys(SECRETS, KEYS[""].secret)
    with pytest.raises(ValueError, match="not what was sealed"):
        open_rows("events", block, foreign)
    for at in range(len(block)):
        changed = block[:at] + bytes([block[at] ^ 1]) + block[at + 1 :]
        try:
            assert open_rows("events", changed, SECRETS)[0] == []  # another key, which nobody has
        except ValueError:
            continue
    for size in range(len(block)):
        with pytest.raises(ValueError, match=r"too short|not what was sealed"):
            open_rows("events", block[:size], SECRETS)


# --- the keys of a database and their file


@pytest.fixture
def store() -> InMemoryUserKeys:
    return InMemoryUserKeys(lambda: {"dana", "noa"})


def file_of(folder: Path) -> Path:
    (found,) = folder.iterdir()
    return found


async def test_a_key_stays_that_of_its_user(store: InMemoryUserKeys, tmp_path: Path) -> None:
    keys = UserKeys(store, FolderBackups(tmp_path), BackupKeys())
    file_id, first = await keys.prepare()
    assert first.keys() == {"dana", "noa"}
    assert (file_id, first) == await keys.prepare()
    assert set(store.rows.values()) == set(first.values())


async def test_who_is_erased_before_the_key_comes_leaves_none(tmp_path: Path) -> None:
    left = [{"dana", "noa"}, {"noa"}]
    store = InMemoryUserKeys(lambda: left.pop(0))
    _, keys = await UserKeys(store, FolderBackups(tmp_path), BackupKeys()).prepare()
    assert keys.keys() == {"noa"}
    assert list(store.rows.values()) == [keys["noa"]]


@pytest.mark.parametrize("encrypted", [False, True])
async def test_the_file_follows_an_erasure(
    store: InMemoryUserKeys, tmp_path: Path, encrypted: bool
) -> None:
    place = FolderBackups(tmp_path / "keys")
    if encrypted:
        new_key(tmp_path / "key")
    age = BackupKeys(key_file=tmp_path / "key") if encrypted else BackupKeys()
    keys = UserKeys(store, place, age)
    assert (await keys.write()).ids == frozenset()
    assert place.listed() == []
    file_id, made = await keys.prepare()
    written = await keys.write()
    assert written.ids == store.rows.keys()
    path = file_of(tmp_path / "keys")
    assert (b"dana" in path.read_bytes()) is not encrypted
    assert path.stat().st_mode & 0o077 == 0
    other = UserKeys(InMemoryUserKeys(set), place, age)
    found, from_file = await other.find(file_id)
    assert (set(found), from_file) == (set(made.values()), True)
    data = path.read_bytes()
    assert await keys.write(written) == written
    assert path.read_bytes() == data
    store.erase("dana")
    assert (await keys.write(written)).ids == {made["noa"].key_id}
    assert (await other.find(file_id))[0] == [made["noa"]]


@pytest.mark.parametrize("encrypted", [False, True])
async def test_a_key_that_came_and_went_between_two_looks_is_in_no_file(
    tmp_path: Path, encrypted: bool
) -> None:
    """Of a user whom a backup of another process met first, and who was erased at once."""
    users = {"dana"}
    if encrypted:
        new_key(tmp_path / "key")
    age = BackupKeys(key_file=tmp_path / "key") if encrypted else BackupKeys()
    store, place = InMemoryUserKeys(lambda: users), FolderBackups(tmp_path / "keys")
    owner, other = (UserKeys(store, place, age) for _ in range(2))
    file_id, made = await owner.prepare()
    written = await owner.write()
    users = {"dana", "noa"}
    await other.prepare()
    await other.write()
    store.erase("noa")
    assert (await owner.write(written)).ids == written.ids
    reader = UserKeys(InMemoryUserKeys(set), place, age)
    assert await reader.find(file_id) == ([made["dana"]], True)


async def test_an_older_state_that_another_process_writes_does_not_stay(tmp_path: Path) -> None:
    class Erasing(InMemoryUserKeys):
        async def files(self) -> list[str]:
            found = await super().files()
            self.erase("dana")  # between the read and the write
            return found

    store = Erasing(lambda: {"dana", "noa"})
    place = FolderBackups(tmp_path)
    file_id, made = await UserKeys(store, place, BackupKeys()).prepare()
    store.rows |= {one.key_id: one for one in made.values()}
    await UserKeys(store, place, BackupKeys()).write()
    other = UserKeys(InMemoryUserKeys(set), place, BackupKeys())
    assert (await other.find(file_id))[0] == [made["noa"]]


async def test_a_database_that_knows_a_file_never_reads_it(
    store: InMemoryUserKeys, tmp_path: Path
) -> None:
    """The keys of who was erased since are in it until it is written anew."""
    keys = UserKeys(store, FolderBackups(tmp_path), BackupKeys())
    file_id, made = await keys.prepare()
    await keys.write()
    store.erase("dana")
    assert await keys.find(file_id) == ([made["noa"]], False)
    store.erase("noa")
    assert await keys.find(file_id) == ([], False)


async def test_keys_that_are_not_there_are_said_in_one_sentence(
    store: InMemoryUserKeys, tmp_path: Path
) -> None:
    place = FolderBackups(tmp_path / "keys")
    file_id, _ = await UserKeys(store, place, BackupKeys()).prepare()
    for nowhere in (None, place):
        with pytest.raises(BadArchive, match=f"no file rayapp-user-keys-{file_id}"):
            await UserKeys(InMemoryUserKeys(set), nowhere, BackupKeys()).find(file_id)
    await UserKeys(store, place, BackupKeys()).write()
    path = file_of(tmp_path / "keys")
    for data in (b"", b"[]", path.read_bytes()[:-1], path.read_bytes().replace(b"dana", b"\xff")):
        path.write_bytes(data)
        with pytest.raises(BadArchive, match="is broken"):
            await UserKeys(InMemoryUserKeys(set), place, BackupKeys()).find(file_id)
