"""Readers of what other systems export. Pure: bytes in, values out."""
