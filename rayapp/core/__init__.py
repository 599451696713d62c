"""What everything stands on: errors, clock, settings, metrics, deadlines, breakers."""
