"""How each service of a process is built out of the runtime; `Factory` holds them."""
