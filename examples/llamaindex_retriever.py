"""LlamaIndex: a retriever over the memories of a user, for any query engine that takes one."""

from llama_index.core import QueryBundle
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode

from rayapp.client import SyncMemoryClient


class MemoryRetriever(BaseRetriever):
    def __init__(self, memory: SyncMemoryClient, limit: int = 5) -> None:
        super().__init__()
        self.memory, self.limit = memory, limit

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        hits = self.memory.search(query_bundle.query_str, limit=self.limit).results
        return [
            NodeWithScore(node=TextNode(id_=hit.memory_id, text=hit.content), score=hit.score)
            for hit in hits
        ]
