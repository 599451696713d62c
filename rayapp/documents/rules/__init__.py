"""Rules on files and their texts: values in, decisions out."""
