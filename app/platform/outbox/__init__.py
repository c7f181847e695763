"""Workshop of the outbox: events written with the change they tell of."""
