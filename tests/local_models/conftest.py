"""Collected where `rayapp[gpu]` is installed; elsewhere `tests.check` says that it is left out."""

from tests.local_models import missing_packages

collect_ignore_glob = ["test_*.py"] if missing_packages() else []
