"""Fills a new collection beside the one in use, proves it, and switches to it."""
