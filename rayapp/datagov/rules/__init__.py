"""How records of the catalogue are cleaned, and the items made of them. Pure."""
