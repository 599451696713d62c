"""Remembers what tools answered."""
