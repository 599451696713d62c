"""Statements, and the typed graph that they make."""
