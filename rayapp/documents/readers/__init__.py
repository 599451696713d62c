"""One module per family of formats. Each has `read(data, order)`, and runs in the reader process
alone: no other process imports what it needs."""
