"""The index derived from the truth: points, the indexing worker, reindex, consistency."""
