"""Model artefacts that travel with the package, and the commands that make them."""
