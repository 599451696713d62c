"""Ray Serve: application, deployments, handles, the engine actor, job launcher."""
