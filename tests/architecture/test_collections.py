"""Every collection of the stores is named in the one table that says how it leaves and goes."""

from rayapp.portability.rules.collections import BY_NAME, COLLECTIONS, LEGACY_BANK, Erasing, Owner
from rayapp.portability.rules.kinds import Kind
from rayapp.storage.mongo.indexes import INDEXES


def test_the_table_names_every_collection() -> None:
    missing = sorted(INDEXES.keys() - BY_NAME.keys())
    assert not missing, (
        f"{missing}: say in rayapp/portability/rules/collections.py whose rows these are and what "
        "an export, an import and an erasure do with them."
    )
    assert BY_NAME.keys() - INDEXES.keys() == {LEGACY_BANK}


def test_every_row_says_what_becomes_of_it() -> None:
    for one in COLLECTIONS:
        assert (one.kind is None) == (one.row is None) == bool(one.why), one.name
        assert (one.owner is Owner.SERVICE) == (one.erasing in (Erasing.KEPT, Erasing.EXPIRES)), (
            one.name
        )


def test_every_kind_has_a_collection() -> None:
    assert {one.kind for one in COLLECTIONS} - {None} == set(Kind)


def test_a_key_is_unique_for_a_user() -> None:
    """An import adds a row once because the store refuses it a second time."""
    for one in COLLECTIONS:
        if one.kind is None:
            continue
        keys = [{path for path, _ in spec.keys} for spec in INDEXES[one.name] if spec.unique]
        wanted = set(one.key)
        assert {"user_id", *wanted} in keys or (not one.mapped and wanted in keys), one.name
