"""Reads the open-data catalogue: a folder of files, a live CKAN site, or a kept snapshot."""
