"""Folders of YAML files that ship with the package."""
