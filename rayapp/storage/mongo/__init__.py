"""MongoDB, the truth: one database object and one class per store protocol."""
