"""What a text says, read without a model or a database."""
