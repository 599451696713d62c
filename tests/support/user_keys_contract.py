"""What every `UserKeyStore` does."""

from rayapp.portability.sealing import UserKeyStore, new_user_key

DANA, NOA = "דנה", "acme/noa"


class UserKeysContract:
    """`user_keys`: a store over rows of DANA, of NOA, and of nobody."""

    async def test_everybody_with_rows_is_an_owner(self, user_keys: UserKeyStore) -> None:
        assert await user_keys.owners() == {DANA, NOA, ""}

    async def test_keys_are_kept_with_the_files_that_hold_them(
        self, user_keys: UserKeyStore
    ) -> None:
        assert (await user_keys.all(), await user_keys.files()) == ([], [])
        first, second = new_user_key(DANA), new_user_key(DANA)
        await user_keys.add([first], "a")
        await user_keys.add([first, second], "a")
        await user_keys.add([], "b")
        by_id = {one.key_id: one for one in await user_keys.all()}
        assert by_id == {first.key_id: first, second.key_id: second}
        assert sorted(await user_keys.files()) == ["a", "b"]
        await user_keys.drop([first.key_id, b"\0" * 16])
        await user_keys.drop([])
        assert await user_keys.all() == [second]
        assert sorted(await user_keys.files()) == ["a", "b"]
