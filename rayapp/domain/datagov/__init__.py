"""The open-data catalogue: its records, how they are cleaned, and the items made of them. Pure."""
