"""Lost, broken and shared folders of the embedded engine, and what survives a restart."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import qdrant_edge

from rayapp.core.errors import IndexDown, InvalidInput, NotFound, SchemaMismatch
from rayapp.core.vectors import IndexSchema
from rayapp.index.records import WHOLE, EncoderUpdate
from rayapp.memory.scope import ItemFilter, ReadScope
from rayapp.storage.qdrant.edge_convert import filter_of
from rayapp.storage.qdrant.edge_engine import EdgeEngine
from rayapp.storage.qdrant.edge_scheduler import exhaust
from rayapp.storage.qdrant.edge_shards import (
    BROKEN_KEPT,
    BROKEN_MARK,
    CollectionState,
    EdgeState,
    load_state,
    save_state,
    set_aside,
)
from rayapp.storage.qdrant.predicate import predicate_of
from tests.support.index_points import (
    DIMS,
    NOW,
    SCHEMA,
    dense_query,
    index_point,
    sparse_query,
    vector,
)

# Folders of the real engine are built, broken and opened again.
pytestmark = pytest.mark.engine

ANN = ReadScope("ann")
FULL = [index_point(f"m{i}") for i in range(12)]


def opened(folder: Path) -> EdgeEngine:
    engine = EdgeEngine(folder, "memories")
    engine.open(SCHEMA)
    return engine


def filled(folder: Path) -> str:
    """A closed, rebuilt folder with FULL in it; the name of its collection."""
    engine = opened(folder)
    exhaust(engine.upsert(FULL))
    engine.rebuilt()
    name = str(engine.health().collection)
    engine.close()
    return name


def lose(folder: Path, name: str) -> None:
    shutil.rmtree(folder / name)


def ruin_config(folder: Path, name: str) -> None:
    (folder / name / "edge_config.json").write_text("not json")


def ruin_segments(folder: Path, name: str) -> None:
    for path in (folder / name / "segments").rglob("*"):
        if path.is_file():
            path.write_bytes(b"\xff" * 64)


DAMAGE: list[Callable[[Path, str], None]] = [lose, ruin_config, ruin_segments]


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda f: f.__name__)
def test_broken_folder_is_set_aside_and_asks_for_a_rebuild_until_done(
    tmp_path: Path, damage: Callable[[Path, str], None]
) -> None:
    name = filled(tmp_path)
    damage(tmp_path, name)
    for _ in range(2):
        engine = opened(tmp_path)
        health = engine.health()
        assert health.ready
        assert health.needs_rebuild
        assert health.collection != name
        assert health.points == 0
        engine.close()
    engine = opened(tmp_path)
    assert engine.query(ANN, ItemFilter(), [dense_query()]) == [([], [])]
    exhaust(engine.upsert(FULL))
    engine.rebuilt()
    engine.close()
    engine = opened(tmp_path)
    health = engine.health()
    assert (health.points, health.needs_rebuild) == (len(FULL), False)
    assert engine.collections() == [health.collection]
    engine.close()
    aside = [p.name for p in tmp_path.iterdir() if BROKEN_MARK in p.name]
    assert len(aside) == (0 if damage is lose else 1)


def test_broken_folder_is_replaced_by_the_first_call_after_a_restart(tmp_path: Path) -> None:
    ruin_config(tmp_path, filled(tmp_path))
    engine = EdgeEngine(tmp_path, "memories")
    assert engine.query(ANN, ItemFilter(), [dense_query()]) == [([], [])]
    health = engine.health()
    assert health.needs_rebuild
    assert "set aside" in health.detail
    exhaust(engine.upsert([index_point("new")]))
    assert engine.count(ANN, None, None) == 1
    engine.close()


def test_lost_state_file_asks_for_a_rebuild(tmp_path: Path) -> None:
    filled(tmp_path)
    (tmp_path / "state.json").write_text('{"aliases"')
    engine = opened(tmp_path)
    health = engine.health()
    assert (health.points, health.needs_rebuild) == (0, True)
    engine.close()


def test_broken_collection_that_is_not_behind_the_alias_is_gone(tmp_path: Path) -> None:
    filled(tmp_path)
    engine = opened(tmp_path)
    engine.create_collection("building", SCHEMA)
    engine.close()
    lose(tmp_path, "building")
    engine = opened(tmp_path)
    with pytest.raises(NotFound):
        exhaust(engine.upsert(FULL, "building"))
    health = engine.health()
    assert (health.points, health.needs_rebuild) == (len(FULL), False)
    engine.close()


def test_points_alias_and_marks_survive_a_restart(tmp_path: Path) -> None:
    name = filled(tmp_path)
    engine = EdgeEngine(tmp_path, "memories")
    health = engine.health()
    assert (health.collection, health.points, health.needs_rebuild) == (name, len(FULL), False)
    (hits,) = engine.query(ANN, ItemFilter(), [sparse_query()])
    assert set(hits[0]) == {p.point_id for p in FULL}
    engine.close()


def test_close_gives_the_folder_back_and_a_call_takes_it_again(tmp_path: Path) -> None:
    engine = opened(tmp_path)
    exhaust(engine.upsert(FULL))
    engine.close()
    other = opened(tmp_path)
    assert other.health().points == len(FULL)
    other.close()
    other.close()
    assert engine.health().points == len(FULL)
    engine.close()


def test_second_process_is_refused_and_the_folder_stays(tmp_path: Path) -> None:
    engine = opened(tmp_path)
    exhaust(engine.upsert(FULL))
    with pytest.raises(IndexDown, match="another process"):
        opened(tmp_path)
    assert engine.health().points == len(FULL)
    assert not [p for p in tmp_path.iterdir() if BROKEN_MARK in p.name]
    engine.close()


def test_failed_call_is_down_and_the_next_one_opens_the_shard_again(tmp_path: Path) -> None:
    engine = opened(tmp_path)
    exhaust(engine.upsert(FULL))
    engine.rebuilt()
    for shard in engine._shards.values():
        shard.close()
    with pytest.raises(IndexDown):
        engine.query(ANN, ItemFilter(), [dense_query()])
    assert engine.count(ANN, None, None) == len(FULL)
    assert engine.health().collection is not None
    engine.close()


@pytest.mark.fault
@pytest.mark.engine
def test_acknowledged_points_survive_a_kill(tmp_path: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path\n"
        "from tests.unit.storage.qdrant.test_edge_engine import exhaust, opened, FULL\n"
        "engine = opened(Path(sys.argv[1])); exhaust(engine.upsert(FULL))\n"
        "print('written', flush=True); time.sleep(60)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline().strip() == "written"
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    engine = opened(tmp_path)
    assert engine.health().points == len(FULL)
    engine.close()


@pytest.mark.parametrize(
    "value", [{1, 2}, object(), [object()], {"a": {1}}], ids=["set", "object", "list", "nested"]
)
def test_payload_that_is_not_json_writes_nothing(tmp_path: Path, value: object) -> None:
    engine = opened(tmp_path)
    with pytest.raises(InvalidInput):
        exhaust(engine.upsert([*FULL, index_point("bad", extra=value)]))
    assert engine.health().points == 0
    engine.close()


def test_only_operations_can_be_called_by_name(tmp_path: Path) -> None:
    engine = opened(tmp_path)
    assert engine.call("count", (None, None, None)) == 0
    for name in ("close", "_state", "flush_dirty", "__init__"):
        with pytest.raises(InvalidInput):
            engine.call(name, ())
    engine.close()


def test_flush_leaves_nothing_dirty(tmp_path: Path) -> None:
    engine = opened(tmp_path)
    exhaust(engine.upsert(FULL))
    assert engine.health().facts["dirty"] == 1
    engine.flush_dirty()
    assert engine.health().facts["dirty"] == 0
    engine.delete([FULL[0].point_id])
    assert engine.health().facts["dirty"] == 1
    engine.flush_dirty()
    assert engine.health().facts["dirty"] == 0
    engine.close()


def test_stored_schema_is_compared_after_a_restart(tmp_path: Path) -> None:
    filled(tmp_path)
    engine = EdgeEngine(tmp_path, "memories")
    with pytest.raises(SchemaMismatch, match="rayapp job reindex"):
        engine.open(replace(SCHEMA, analyser="a2"))
    engine.open(SCHEMA)
    engine.close()


def test_state_file_is_read_back_as_written(tmp_path: Path) -> None:
    state = EdgeState(
        aliases={"memories": "a"},
        collections={"a": CollectionState(SCHEMA, True), "b": CollectionState(SCHEMA, False)},
    )
    save_state(tmp_path, state)
    assert load_state(tmp_path) == state
    assert sorted(p.name for p in tmp_path.iterdir()) == ["state.json"]


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", json.dumps({"aliases": {}, "collections": {"a": {}}})], ids=repr
)
def test_unreadable_state_file_is_set_aside(tmp_path: Path, text: str) -> None:
    (tmp_path / "state.json").write_text(text)
    assert load_state(tmp_path) == EdgeState()
    assert [BROKEN_MARK in p.name for p in tmp_path.iterdir()] == [True]


def test_only_the_last_broken_folders_are_kept(tmp_path: Path) -> None:
    for i in range(BROKEN_KEPT + 2):
        (tmp_path / f"c{9 - i}").mkdir()
        set_aside(tmp_path / f"c{9 - i}")
    kept = sorted(p.name.partition(BROKEN_MARK)[0] for p in tmp_path.iterdir())
    assert kept == [f"c{9 - i}" for i in reversed(range(2, BROKEN_KEPT + 2))]


def test_empty_any_of_matches_nothing_in_the_engine_itself(tmp_path: Path) -> None:
    """The engine is not asked for such a predicate; if it were, it must fail closed."""
    engine = opened(tmp_path)
    exhaust(engine.upsert(FULL))
    nothing = predicate_of(ANN, ItemFilter(langs=()))
    assert nothing.matches_nothing
    with engine._engine(str(engine.health().collection)) as shard:
        records, _ = shard.scroll(qdrant_edge.ScrollRequest(limit=50, filter=filter_of(nothing)))
    assert records == []
    engine.close()


def test_schema_of_a_new_collection_decides_the_size(tmp_path: Path) -> None:
    engine = opened(tmp_path)
    wide = IndexSchema(model="w", dims=DIMS * 2, analyser="a")
    engine.create_collection("wide", wide)
    exhaust(engine.upsert([replace(index_point("w"), dense=vector(1, DIMS * 2))], "wide"))
    assert engine.count(None, None, "wide") == 1
    assert engine.count(None, ItemFilter(now=NOW), None) == 0
    engine.close()


ENCODED = replace(SCHEMA, encoder="encoder-1", encoder_dims=6)


def read_of(folder: Path, schema: IndexSchema) -> list[str]:
    """Points that have the encoder's vector, in a folder opened for `schema`."""
    engine = EdgeEngine(folder, "memories")
    engine.open(schema)
    points, _ = exhaust(engine.scroll(None, None, 100, WHOLE, False))
    engine.close()
    return sorted(point.point_id for point in points if point.encoder is not None)


def test_place_for_the_encoder_is_made_where_there_is_none(tmp_path: Path) -> None:
    filled(tmp_path)
    assert "encoder" not in (tmp_path / "state.json").read_text()
    engine = EdgeEngine(tmp_path, "memories")
    engine.open(ENCODED)
    assert engine.schema_of(str(engine.health().collection)) == ENCODED
    update = EncoderUpdate(point_id=FULL[0].point_id, vectors=(vector(1, 6),), rev=1)
    exhaust(engine.set_encoder([update]))
    assert engine.health().points == len(FULL)
    engine.close()
    assert read_of(tmp_path, ENCODED) == [FULL[0].point_id]
    # Switched off and on again nothing of it is lost; those of another encoder are.
    assert read_of(tmp_path, SCHEMA) == [FULL[0].point_id]
    assert read_of(tmp_path, ENCODED) == [FULL[0].point_id]
    assert read_of(tmp_path, replace(ENCODED, encoder="encoder-2", encoder_dims=4)) == []


def test_a_place_whose_making_was_cut_off_is_made_again(tmp_path: Path) -> None:
    filled(tmp_path)
    before = (tmp_path / "state.json").read_text()
    engine = EdgeEngine(tmp_path, "memories")
    engine.open(ENCODED)
    engine.close()
    (tmp_path / "state.json").write_text(before)
    assert read_of(tmp_path, ENCODED) == []
    engine = EdgeEngine(tmp_path, "memories")
    engine.open(ENCODED)
    assert engine.health().points == len(FULL)
    engine.close()


def test_another_model_is_a_mismatch_with_the_encoder_too(tmp_path: Path) -> None:
    filled(tmp_path)
    engine = EdgeEngine(tmp_path, "memories")
    with pytest.raises(SchemaMismatch):
        engine.open(replace(ENCODED, model="another"))
    engine.close()
