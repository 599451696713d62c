"""The models in the package are the files that their metadata describe, and small enough."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from jobs.build.bilingual import FORMAT, LANGS, NAME, ORIGIN
from jobs.build.encoder import NAME as ENCODER
from rayapp.inference.backends.static_model import BUNDLED

MODELS = sorted(path.parent.name for path in BUNDLED.glob("*/metadata.json"))
# Of a bundled model in bytes, with everything that belongs to it: what was asked of it.
MAX_BYTES = {ENCODER: 36_000_000}
MAX_EMBEDDER_BYTES = 20_000_000
LEGAL = {"LICENSE", "NOTICE"}


def metadata_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "metadata.json").read_text(encoding="utf-8"))
    return found


def test_the_models_are_in_the_package() -> None:
    assert set(MODELS) == {NAME, "potion-base-8m-int8", ENCODER}


@pytest.mark.parametrize("name", MODELS)
def test_every_file_has_the_hash_of_its_metadata(name: str) -> None:
    """A file that changed alone, or came without a hash, is a model that nobody measured."""
    folder = BUNDLED / name
    metadata = metadata_of(folder)
    files = {path.name for path in folder.iterdir()} - LEGAL - {"metadata.json"}
    # The English model keeps the tokenizer of its origin as it was.
    hashes = {
        file: digest
        for file, digest in (metadata.get("origin_sha256", {}) | metadata["sha256"]).items()
        if file in files
    }
    assert set(hashes) == files
    assert metadata["sha256"].keys() <= files
    for file in sorted(files):
        assert hashlib.sha256((folder / file).read_bytes()).hexdigest() == hashes[file], file


@pytest.mark.parametrize("name", MODELS)
def test_a_model_stays_small_and_names_its_sources(name: str) -> None:
    folder = BUNDLED / name
    size = sum(path.stat().st_size for path in folder.iterdir())
    assert size <= MAX_BYTES.get(name, MAX_EMBEDDER_BYTES)
    for file in LEGAL:
        assert (folder / file).read_text(encoding="utf-8").strip()


def test_the_bilingual_model_is_what_its_command_makes_now() -> None:
    """As far as metadata tell: a build with today's defaults writes these values."""
    metadata = metadata_of(BUNDLED / NAME)
    assert (metadata["name"], metadata["format"]) == (NAME, FORMAT)
    assert (metadata["langs"], metadata["origin"]) == (LANGS, ORIGIN)
