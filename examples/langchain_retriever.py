"""LangChain: a retriever over the memories of a user, for any chain that takes one."""

from typing import Any

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever


class MemoryRetriever(BaseRetriever):
    """`memory` is a `rayapp.client.SyncMemoryClient`."""

    memory: Any
    limit: int = 5

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        hits = self.memory.search(query, limit=self.limit).results
        return [
            Document(hit.content, id=hit.memory_id, metadata={"tier": hit.tier, "score": hit.score})
            for hit in hits
        ]
