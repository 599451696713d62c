"""What every bulk job is made of: model, runner, leases, partitions, checkpoints."""
