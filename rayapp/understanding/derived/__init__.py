"""Episodes and thoughts: what texts mean together, and the hints that are made of it."""
