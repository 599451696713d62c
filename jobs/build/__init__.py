"""Builders of the models that travel with the package."""
