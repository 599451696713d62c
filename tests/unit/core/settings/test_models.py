"""Settings of the language model."""

import pytest

from rayapp.core.errors import ConfigError
from rayapp.core.settings.load import load_settings
from rayapp.core.settings.model import HelperFlags
from rayapp.inference.ports import HELPERS

URL = "http://127.0.0.1:8080/v1"


def test_without_an_endpoint_models_are_off() -> None:
    assert not load_settings("local", env={}).models.on


def test_the_names_of_the_first_client_are_read() -> None:
    env = {
        "MEMORY_LLM_BASE_URL": URL,
        "MEMORY_LLM_MODEL": "dictalm-3.0",
        "MEMORY_LLM_API_KEY": "sk-secret",
    }
    models = load_settings("local", env=env).models
    assert (models.base_url, models.model, models.api_key) == (URL, "dictalm-3.0", "sk-secret")
    assert models.on


def test_our_own_names_win() -> None:
    env = {"MEMORY_LLM_BASE_URL": URL, "MEMORY_LLM_MODEL": "a", "RAYAPP_MODELS__MODEL": "b"}
    assert load_settings("local", env=env).models.model == "b"


def test_an_endpoint_without_a_model_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"models\.model"):
        load_settings("local", env={"MEMORY_LLM_BASE_URL": URL})


@pytest.mark.parametrize("url", ["host:8080", "ftp://user:pw@host/v1", "http://", "http://[::1"])
def test_another_address_is_refused_without_showing_it(url: str) -> None:
    env = {"MEMORY_LLM_BASE_URL": url, "MEMORY_LLM_MODEL": "m"}
    with pytest.raises(ConfigError, match="http://") as caught:
        load_settings("local", env=env)
    assert "pw" not in str(caught.value)


def test_every_helper_has_its_switch() -> None:
    assert set(HelperFlags.model_fields) == set(HELPERS)


def test_the_key_is_not_shown() -> None:
    models = load_settings(
        "local", env={}, overrides={"models": {"base_url": URL, "model": "m", "api_key": "sk-x"}}
    ).models
    assert "sk-x" not in repr(models)
