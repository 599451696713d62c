"""Embedding, reranking and chat gateways: batching, cache, budget, backends."""
