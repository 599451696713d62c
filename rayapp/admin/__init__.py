"""Health, statistics, upkeep, keys, old data, and the event stream."""
