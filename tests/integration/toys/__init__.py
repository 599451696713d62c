"""Jobs that exist for tests only."""
