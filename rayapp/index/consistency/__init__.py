"""Finds what differs between truth and index, and repairs it."""
