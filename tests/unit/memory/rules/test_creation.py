"""What a new memory may be."""

from rayapp.memory.rules.creation import is_raw_exchange


def test_a_long_log_of_one_side_is_no_exchange() -> None:
    asked = "  User: where?\n" * 100_000
    assert not is_raw_exchange(asked)
    assert is_raw_exchange(asked + "\tAssistant: there")


def test_an_exchange_in_hebrew_is_one() -> None:
    assert is_raw_exchange("משתמשת: מה שלומך\nהעוזר: טוב, תודה")
    assert not is_raw_exchange("משתמש: דני\nסיסמה: 1234")
