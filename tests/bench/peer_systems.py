"""The peers: what a user would pick instead, each with the embedder of the service.

Imports of the peers are late: this module is read where none of them is installed. No retrieval
path is changed. What is not the default of a peer is said in its `note`.
"""

import hashlib
import importlib
import os
import time
import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from jobs.suites.bm25 import PlainBm25
from jobs.suites.suite import Document
from rayapp.core.vectors import Vector
from rayapp.inference.backends.static_model import load_static_model
from tests.bench.peer_protocol import Plan, Row

CHROMA_BATCH = 1_000  # items per call; its own bound is about 5,000
FILL_BATCH = 500  # points per call to a Qdrant server
GREEN_LIMIT_S = 900.0  # a Qdrant server that optimises for longer than this is stuck
GREEN_POLL_S = 0.5
HF_CACHE = Path("models--Qdrant--bm25")
HF_REVISION = "0" * 40  # any name: the reference file points at it


class System(Protocol):
    """A store with search. `waits` = items are found only after `settle`, so it is timed."""

    note: str
    packages: tuple[str, ...]
    waits: bool

    def open(self, part: str) -> None:
        """An empty store for this part."""

    def add(self, rows: Sequence[Row]) -> None: ...

    def fill(self, rows: Sequence[Row]) -> None:
        """As `add`, by the quickest way that ends in the same store; never timed."""

    def settle(self) -> None: ...

    def search(self, user: str, text: str, limit: int) -> Sequence[str]: ...


class Embedder:
    """The static model, rows of length one."""

    def __init__(self, folder: str) -> None:
        self._model = load_static_model(Path(folder))
        self.dims = self._model.dims

    def __call__(self, texts: Sequence[str]) -> Vector:
        sums = self._model.sums(texts)
        norms = np.linalg.norm(sums, axis=1, keepdims=True)
        unit: Vector = np.asarray(sums / np.where(norms == 0.0, 1.0, norms), dtype=np.float32)
        return unit


class Bm25:
    """Plain Okapi BM25, one index in memory per user."""

    note = "in process, exact, one index per user"
    packages: tuple[str, ...] = ()
    waits = True

    def __init__(self, plan: Plan) -> None:
        self._rows: dict[str, list[Document]] = {}
        self._users: dict[str, PlainBm25] = {}

    def open(self, part: str) -> None:
        self._rows, self._users = defaultdict(list), {}

    def add(self, rows: Sequence[Row]) -> None:
        for row in rows:
            self._rows[row.user].append(Document(row.name, row.text))

    fill = add

    def settle(self) -> None:
        self._users = {user: PlainBm25(rows) for user, rows in self._rows.items()}

    def search(self, user: str, text: str, limit: int) -> Sequence[str]:
        return self._users[user].rank(text, limit)


class Dense:
    """Exact cosine over one matrix in memory per user."""

    note = "in process, exact cosine, one matrix per user"
    packages: tuple[str, ...] = ("numpy",)
    waits = True

    def __init__(self, plan: Plan) -> None:
        self._embed = Embedder(plan.model)
        self._vectors: dict[str, list[Vector]] = {}
        self._names: dict[str, list[str]] = {}
        self._users: dict[str, Vector] = {}

    def open(self, part: str) -> None:
        self._vectors, self._names, self._users = defaultdict(list), defaultdict(list), {}

    def add(self, rows: Sequence[Row]) -> None:
        for row, vector in zip(rows, self._embed([row.text for row in rows]), strict=True):
            self._vectors[row.user].append(vector)
            self._names[row.user].append(row.name)

    fill = add

    def settle(self) -> None:
        self._users = {user: np.stack(vectors) for user, vectors in self._vectors.items()}

    def search(self, user: str, text: str, limit: int) -> Sequence[str]:
        scores = self._users[user] @ self._embed([text])[0]
        names = self._names[user]
        return [names[row] for row in np.argsort(-scores, kind="stable")[:limit]]


class Chroma:
    """A persistent client in process, one collection, the user in the metadata."""

    note = "persistent client in process, cosine HNSW with its defaults, user in `where`"
    packages: tuple[str, ...] = ("chromadb",)
    waits = False

    def __init__(self, plan: Plan) -> None:
        chromadb: Any = importlib.import_module("chromadb")
        settings = chromadb.config.Settings(anonymized_telemetry=False)
        self._client = chromadb.PersistentClient(path=plan.folder, settings=settings)
        self._embed = Embedder(plan.model)
        self._collection: Any = None

    def open(self, part: str) -> None:
        self._collection = self._client.create_collection(
            part, metadata={"hnsw:space": "cosine"}, embedding_function=None
        )

    def add(self, rows: Sequence[Row]) -> None:
        for start in range(0, len(rows), CHROMA_BATCH):
            batch = rows[start : start + CHROMA_BATCH]
            texts = [row.text for row in batch]
            self._collection.add(
                ids=[f"{row.user}\n{row.name}" for row in batch],
                embeddings=self._embed(texts),
                documents=texts,
                metadatas=[{"user_id": row.user} for row in batch],
            )

    fill = add

    def settle(self) -> None:
        return None

    def search(self, user: str, text: str, limit: int) -> Sequence[str]:
        found = self._collection.query(
            query_embeddings=self._embed([text]), n_results=limit, where={"user_id": user}
        )
        return [str(name).split("\n", 1)[1] for name in found["ids"][0]]


class Mem0:
    """`Memory` with `infer=False`: no language model is asked. Its vectors are in Qdrant.

    mem0 takes one item per add; `fill` gives the same payloads to its own vector store in batches,
    so that 100,000 items do not take an hour.
    """

    note = (
        "Memory.add(infer=False) one item at a time, on a Qdrant server; keywords of fastembed "
        "with the stop words of the stop-words package (its own list is on a model hub); no spaCy "
        "model, so texts are not lemmatised"
    )
    packages: tuple[str, ...] = ("mem0ai", "qdrant-client", "fastembed")
    waits = False
    by_keywords = True

    def __init__(self, plan: Plan) -> None:
        folder = Path(plan.folder)
        os.environ |= {
            "MEM0_TELEMETRY": "False",
            "MEM0_DIR": str(folder / "mem0"),
            "HF_HUB_OFFLINE": "1",
            "FASTEMBED_CACHE_PATH": str(folder / "fastembed"),
        }
        if self.by_keywords:
            _stop_words(folder / "fastembed")
        self._plan, self._embed = plan, Embedder(plan.model)
        self._memory: Any = None

    def open(self, part: str) -> None:
        mem0: Any = importlib.import_module("mem0")
        base: Any = importlib.import_module("mem0.embeddings.base")
        embed, plan, folder = self._embed, self._plan, Path(self._plan.folder)

        class StaticEmbedding(base.EmbeddingBase):  # type: ignore[misc]
            def embed(self, text: str, memory_action: str | None = None) -> list[float]:
                return list(map(float, embed([text])[0]))

        place: dict[str, Any] = {"path": str(folder / f"qdrant-{part}")}
        if plan.port:
            place = {"host": plan.host, "port": plan.port}
        # The clients of a hosted model and embedder are made and never called.
        hosted = {"provider": "openai", "config": {"api_key": "unused"}}
        store = {"collection_name": part, "embedding_model_dims": embed.dims, **place}
        self._memory = mem0.Memory.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": store},
                "embedder": hosted,
                "llm": hosted,
                "history_db_path": str(folder / f"history-{part}.db"),
            }
        )
        self._memory.embedding_model = StaticEmbedding()

    def add(self, rows: Sequence[Row]) -> None:
        for row in rows:
            metadata = {"name": row.name}
            self._memory.add(row.text, user_id=row.user, infer=False, metadata=metadata)

    def fill(self, rows: Sequence[Row]) -> None:
        for start in range(0, len(rows), FILL_BATCH):
            batch = rows[start : start + FILL_BATCH]
            self._memory.vector_store.insert(
                vectors=self._embed([row.text for row in batch]).tolist(),
                payloads=[mem0_payload(row) for row in batch],
                ids=[str(uuid.uuid4()) for _ in batch],
            )

    def settle(self) -> None:
        if not self._plan.port:
            return
        client, name = self._memory.vector_store.client, self._memory.collection_name
        deadline = time.monotonic() + GREEN_LIMIT_S
        while str(client.get_collection(name).status.value) != "green":
            if time.monotonic() > deadline:
                raise TimeoutError("the Qdrant server did not finish building its index")
            time.sleep(GREEN_POLL_S)

    def hits(self, user: str, text: str, limit: int) -> list[dict[str, Any]]:
        """What `Memory.search` answers."""
        found = self._memory.search(text, filters={"user_id": user}, top_k=limit)
        return list(found["results"])

    def search(self, user: str, text: str, limit: int) -> Sequence[str]:
        return [str(hit["metadata"]["name"]) for hit in self.hits(user, text, limit)]


class Mem0Dense(Mem0):
    """As it installs without a network: the keyword retriever has no word list and stays off."""

    note = "as mem0, without the keyword retriever: what runs when the model hub cannot be reached"
    packages = ("mem0ai", "qdrant-client")
    by_keywords = False


def mem0_payload(row: Row) -> dict[str, str]:
    """What `Memory.add` stores beside a vector."""
    now = datetime.now(UTC).isoformat()
    return {
        "name": row.name,
        "user_id": row.user,
        "role": "user",
        "data": row.text,
        "hash": hashlib.md5(row.text.encode()).hexdigest(),
        "created_at": now,
        "updated_at": now,
        "text_lemmatized": row.text,
    }


def _stop_words(cache: Path) -> None:
    """The word lists where fastembed looks for a download of them.

    It asks for a file of every language and reads the English one.
    """
    stop_words: Any = importlib.import_module("stop_words")
    bm25: Any = importlib.import_module("fastembed.sparse.bm25")
    snapshot = cache / HF_CACHE / "snapshots" / HF_REVISION
    snapshot.mkdir(parents=True)
    (cache / HF_CACHE / "refs").mkdir()
    (cache / HF_CACHE / "refs" / "main").write_text(HF_REVISION, encoding="ascii")
    (snapshot / "config.json").write_text("{}", encoding="ascii")
    words = "\n".join(stop_words.get_stop_words("english"))
    for language in bm25.supported_languages:
        text = words if language == "english" else ""
        (snapshot / f"{language}.txt").write_text(text, encoding="utf-8")


SYSTEMS: Mapping[str, type[Bm25] | type[Dense] | type[Chroma] | type[Mem0]] = {
    "bm25": Bm25,
    "dense": Dense,
    "chroma": Chroma,
    "mem0": Mem0,
    "mem0-dense": Mem0Dense,
}
# These are not dependencies of the project and run in an environment of their own.
FOREIGN = frozenset({"chroma", "mem0", "mem0-dense"})
ON_QDRANT = frozenset({"mem0", "mem0-dense"})


def versions(system: System) -> dict[str, str]:
    return {name: version(name) for name in system.packages}
