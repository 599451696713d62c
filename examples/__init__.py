"""Programs that show how the service is used."""
