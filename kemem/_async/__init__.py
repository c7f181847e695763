"""The client, written with `async`; `make client` generates `kemem/_sync` from it."""
