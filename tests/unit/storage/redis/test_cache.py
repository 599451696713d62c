"""Addresses that are no cache."""

import pytest

from rayapp.core.errors import ConfigError
from rayapp.storage.redis import RedisCache


@pytest.mark.parametrize(
    "url", ["localhost:6379", "http://:secret@h", "redis://:secret@h:port", ""]
)
def test_a_bad_url_is_a_sentence_without_the_password(url: str) -> None:
    with pytest.raises(ConfigError, match=r"redis\.url is no cache address") as caught:
        RedisCache(url, timeout_s=0.05)
    assert "secret" not in caught.value.message
