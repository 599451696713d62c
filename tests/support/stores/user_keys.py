"""Keys of users in process memory. They pass the contract suite of MongoDB's."""

from collections.abc import Callable, Collection, Sequence

from rayapp.portability.sealing import UserKey


class InMemoryUserKeys:
    """Implements `portability.sealing.UserKeyStore`; `owners_now`: whose rows there are."""

    def __init__(self, owners_now: Callable[[], set[str]]) -> None:
        self._owners = owners_now
        self.rows: dict[bytes, UserKey] = {}
        self.file_ids: set[str] = set()

    async def owners(self) -> set[str]:
        return self._owners()

    async def all(self) -> list[UserKey]:
        return list(self.rows.values())

    async def files(self) -> list[str]:
        return sorted(self.file_ids)

    async def add(self, keys: Sequence[UserKey], file_id: str) -> None:
        self.rows |= {one.key_id: one for one in keys}
        self.file_ids.add(file_id)

    async def drop(self, key_ids: Collection[bytes]) -> None:
        for one in key_ids:
            self.rows.pop(one, None)

    def erase(self, user_id: str) -> None:
        self.rows = {key: one for key, one in self.rows.items() if one.user_id != user_id}
