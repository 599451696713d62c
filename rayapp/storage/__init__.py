"""Drivers: each package implements ports and is the only one to import its driver."""
