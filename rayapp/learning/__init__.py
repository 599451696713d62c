"""Outcomes, promotion, dedup, insights, the outbox and the leader's tasks."""
