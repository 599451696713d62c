"""Pure rules of understanding."""
