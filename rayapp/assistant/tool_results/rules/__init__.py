"""What becomes of a tool's answer before it is remembered: cleaning, labels, limits."""
