"""Shims over injected services, one per kind of resource."""
