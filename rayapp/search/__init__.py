"""The one search: plan, retrieve, fuse, rank, rerank, explain."""
