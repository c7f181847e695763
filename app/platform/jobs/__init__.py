"""Durable work: order, claim, lease, heartbeat, retry, give up."""
