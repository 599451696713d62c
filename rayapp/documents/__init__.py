"""Files become memories: reading, cutting and keeping of documents."""
