"""How each service of a process is built out of the runtime; `app.factory.Factory` holds them."""
