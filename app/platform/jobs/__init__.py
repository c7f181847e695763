"""Workshop of durable work: schedule, claim, lease, heartbeat, retry, give up."""
