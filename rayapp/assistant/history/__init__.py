"""Conversations that are kept: their titles, words, what was learned from them."""
