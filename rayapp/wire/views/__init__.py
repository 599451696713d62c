"""Values as JSON objects, built by hand."""
