"""Summaries, and the pointer behind which messages leave the window."""
