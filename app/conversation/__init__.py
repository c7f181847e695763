"""What is said: sessions and their messages."""
