"""Settings: precedence, bounds, unknown names, dangerous pairs, the generated reference."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from rayapp.core.errors import ConfigError
from rayapp.core.settings import reference as settings_reference
from rayapp.core.settings.load import CONFIG_DIR, load_settings, setting_names
from rayapp.core.settings.model import Settings, SettingsSection

PROD_ENV = {
    "MONGODB_URI": "mongodb://db/?replicaSet=rs",
    "QDRANT_URL": "http://index:6333",
    "RAYAPP_BACKUP__DIR": "/mnt/archives",
}
PROD = {
    "profile": "prod",
    "mongo": {"uri": "mongodb://x"},
    "qdrant": {"url": "http://x"},
    "auth": {"mode": "keys"},
}


def load(**overrides: Any) -> Settings:
    return load_settings(env={}, overrides=overrides)


def yaml_file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return path


class TestPrecedence:
    def test_argument_over_environment_over_yaml_over_default(self, tmp_path: Path) -> None:
        env = {"RAYAPP_HTTP__PORT": "1002"}
        assert load_settings(config=yaml_file(tmp_path, ""), env={}).http.port == 8000
        config = yaml_file(tmp_path, "http: {port: 1001, body_limit_bytes: 2048}")
        assert load_settings(config=config, env={}).http.port == 1001
        assert load_settings(config=config, env=env).http.port == 1002
        made = load_settings(config=config, env=env, overrides={"http": {"port": 1003}})
        assert made.http.port == 1003
        assert made.http.body_limit_bytes == 2048

    def test_plain_names_of_the_servers(self) -> None:
        env = PROD_ENV | {"REDIS_URL": "redis://c", "RAY_ADDRESS": "10.0.0.1:6379"}
        made = load_settings(env=env)
        assert made.mongo.uri == env["MONGODB_URI"]
        assert made.qdrant.url == env["QDRANT_URL"]
        assert made.redis.url == env["REDIS_URL"]
        assert made.ray.address == env["RAY_ADDRESS"]

    def test_an_empty_plain_name_is_not_set(self) -> None:
        assert load_settings(env={"MONGODB_URI": ""}).mongo.uri == ""

    def test_profile_and_config_from_the_environment(self, tmp_path: Path) -> None:
        assert load_settings(env={"RAYAPP_PROFILE": "gpu"}).embedding.backend == "local"
        config = yaml_file(tmp_path, "search: {min_depth: 33}")
        assert load_settings(env={"RAYAPP_CONFIG": str(config)}).search.min_depth == 33

    def test_a_recipe_without_a_feature(self) -> None:
        name = "default-without-dense"
        assert load_settings(env={"RAYAPP_SEARCH__RECIPE": name}).search.recipe == name

    def test_lists_and_other_readers_of_the_prefix(self) -> None:
        env = {"RAYAPP_HTTP__ALLOWED_HOSTS": "['a', 'b']", "RAYAPP_REALDATA": "/x"}
        assert load_settings(env=env).http.allowed_hosts == ["a", "b"]

    def test_a_profile_that_sets_the_replicas_keeps_the_other_defaults(self) -> None:
        made = load(serve={"search": {"replicas": 2}})
        assert made.serve.search.max_ongoing_requests == 1024

    def test_round_trip_through_json(self) -> None:
        made = load(http={"port": 1}, data={"dir": "/tmp/x"})
        assert Settings.model_validate_json(made.model_dump_json()) == made


@pytest.mark.parametrize("name", ["local", "gpu", "prod"])
def test_every_profile_is_valid(name: str) -> None:
    made = load_settings(name, env=PROD_ENV)
    assert made.profile == name


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({"RAYAPP_HTTP__PROT": "1"}, "'http.prot'; did you mean 'http.port'"),
        ({"RAYAPP_HTP__PORT": "1"}, "did you mean 'http"),
        ({"RAYAPP_SEARCH__MINDEPTH": "1"}, "did you mean 'search.min_depth'"),
        ({"RAYAPP_EMBEDDING__BATCH__MAXSIZE": "1"}, "did you mean 'embedding.batch.max_size'"),
        ({"RAYAPP_HTTP__PORT": "70000"}, "http.port"),
        ({"RAYAPP_HTTP__PORT": "many"}, "http.port"),
        ({"RAYAPP_MONGO__WIRED_TIGER_CACHE_GB": "0.1"}, "mongo.wired_tiger_cache_gb"),
        ({"RAYAPP_LOGGING__LEVEL": "loud"}, "logging.level"),
        ({"RAYAPP_HTTP": "x", "RAYAPP_HTTP__PORT": "1"}, "http is a group"),
        ({"RAYAPP_HTTP__ALLOWED_HOSTS": "['a"}, "not a YAML list"),
        ({"RAYAPP_PROFILE": "staging"}, "No profile 'staging'"),
        ({"RAYAPP_CONFIG": "/nowhere/mine.yaml"}, "No settings file /nowhere/mine.yaml"),
        ({"RAYAPP_HTTP": "5"}, "http is a group: set one of its names, for example http.host"),
        ({"RAYAPP_SERVE__SEARCH": "5"}, "for example serve.search.replicas"),
        ({"RAYAPP___X": "1"}, "RAYAPP___X names no setting: write RAYAPP_<GROUP>__<NAME>"),
        ({"RAYAPP_": "1"}, "RAYAPP_ names no setting"),
        ({"RAYAPP_AUTH__DEFAULT_USER": "system"}, "auth.default_user: use 1 to 128"),
        ({"RAYAPP_AUTH__DEFAULT_USER": "two words"}, "auth.default_user: use 1 to 128"),
        ({"RAYAPP_SEARCH__RECIPE": "nope"}, "search.recipe: no recipe 'nope'; use default,"),
    ],
)
def test_bad_environment(env: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings(env=env)
    assert said in caught.value.message


ADDRESSES = [
    ("MONGODB_URI", ["mongodb://u:p@a:1,b:2/?replicaSet=rs", "mongodb+srv://cluster.example"]),
    ("QDRANT_URL", ["http://127.0.0.1:6333", "https://index.example/path"]),
    ("REDIS_URL", ["redis://:p@h:6379/0", "rediss://h", "unix:///run/cache.sock"]),
    ("RAY_ADDRESS", ["auto", "10.0.0.1:6379", "head.example:6379", "[::1]:6379", "ray://h:10001"]),
]
WRONG = {
    "MONGODB_URI": ["localhost:27017", "http://db", "mongodb://", "mongodb:///x"],
    "QDRANT_URL": ["localhost:6333", "127.0.0.1:6333", "grpc://h:6334", "http://", "http://[x"],
    "REDIS_URL": ["localhost:6379", "redis:h", "unix://", "http://h"],
    "RAY_ADDRESS": ["none", "head", "http://head:8265", "a b:1", "h:port"],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, good in ADDRESSES for value in good]
)
def test_addresses_in_every_form_that_works(name: str, value: str) -> None:
    assert value in load_settings(env={name: value}).model_dump_json()


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, bad in WRONG.items() for value in bad]
)
def test_other_addresses_are_one_sentence_that_does_not_repeat_them(name: str, value: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings(env={name: f"{value}#secret" if "/" in value else value})
    assert re.fullmatch(
        r"Setting (mongo|qdrant|redis|ray)\.\w+: (start|use) .*", caught.value.message
    )
    assert "secret" not in caught.value.message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("http: {prot: 1}", "'http.prot'; did you mean 'http.port'"),
        ("serch: {min_depth: 1}", "did you mean 'search"),
        ("http: [1]", "http"),
        ("- a", "mapping"),
        ("a: [", "not valid YAML"),
    ],
)
def test_bad_yaml(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings(config=yaml_file(tmp_path, text), env={})
    assert said in caught.value.message


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        ({"http": {"host": "0.0.0.0"}, "auth": {"mode": "open"}}, "auth.mode to keys"),
        ({"embedding": {"backend": "http"}}, "embedding.url"),
        ({"embedding": {"backend": "http", "url": "http://x"}}, "set embedding.model to its name"),
        ({"reranker": {"backend": "http"}}, "reranker.url"),
        ({"reranker": {"backend": "local"}}, "reranker.model"),
        ({"indexer": {"backoff_min_s": 700}}, "backoff_max_s"),
        ({"http": {"max_in_flight": 1024}}, "serve.search.max_ongoing_requests 1024"),
        ({"serve": {"search": {"max_ongoing_requests": 100}}}, "our own 429 must come first"),
        ({"profile": "prod", "qdrant": {"url": "http://x"}}, "MONGODB_URI"),
        ({"profile": "prod", "mongo": {"uri": "mongodb://x"}}, "QDRANT_URL"),
        (
            {"profile": "prod", "mongo": {"uri": "mongodb://x"}, "qdrant": {"url": "http://x"}},
            "profile prod needs keys",
        ),
        (PROD, "set backup.dir to a folder that every host mounts"),
        (
            {**PROD, "data": {"dir": "/data"}, "backup": {"dir": "/data/archives"}},
            "set backup.dir to a folder that every host mounts",
        ),
        (
            {
                **PROD,
                "backup": {"dir": "/mnt/archives"},
                "auth": {"mode": "keys", "sessions": True},
            },
            "set auth.session_secret to one secret for all of them",
        ),
    ],
)
def test_dangerous_pairs_are_refused(overrides: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(**overrides)
    assert said in caught.value.message


@pytest.mark.parametrize(
    ("host", "mode", "required"),
    [
        ("127.0.0.1", "auto", False),
        ("localhost", "open", False),
        ("127.0.0.1", "keys", True),
        ("0.0.0.0", "auto", True),
        ("10.0.0.5", "keys", True),
    ],
)
def test_when_keys_are_required(host: str, mode: str, required: bool) -> None:
    assert load(http={"host": host}, auth={"mode": mode}).keys_required is required


def test_every_setting_has_a_description() -> None:
    root = Settings()
    concerns = [root, *(value for _, value in root if isinstance(value, SettingsSection))]
    missing = [
        f"{type(concern).__name__}.{name}"
        for concern in concerns
        for name, info in type(concern).model_fields.items()
        if not info.description
    ]
    assert missing == []


class TestReference:
    def test_the_file_is_up_to_date(self) -> None:
        assert settings_reference.main(["--check"]) == 0

    def test_it_names_every_setting_and_loads_as_the_defaults(self) -> None:
        tree = yaml.safe_load((CONFIG_DIR / "reference.yaml").read_text(encoding="utf-8"))
        assert Settings.model_validate(tree) == Settings()
        for name in setting_names():
            node = tree
            for part in name.split("."):
                node = node[part]

    def test_check_notices_a_difference(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        copy = tmp_path / "reference.yaml"
        monkeypatch.setattr(settings_reference, "REFERENCE", copy)
        assert settings_reference.main(["--check"]) == 1
        assert settings_reference.main([]) == 0
        assert settings_reference.main(["--check"]) == 0
        copy.write_text(copy.read_text() + "# edited\n")
        assert settings_reference.main(["--check"]) == 1
        assert "out of date" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["sample", "rollback_h"])
def test_a_reindex_setting_has_an_upper_bound(name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        load_settings("local", env={}, overrides={"reindex": {name: 10_001}})
