"""Events told to the programs of a user: by signed requests to their addresses (decision 0100)."""
