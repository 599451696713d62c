"""Items that the index does not hold yet."""
