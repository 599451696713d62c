"""Stores in memory, fake services, contract suites and servers for tests."""
