"""What the assistant gets: context, gating, attribution."""
