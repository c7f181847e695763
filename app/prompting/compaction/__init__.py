"""Room: summaries, and the pointer behind which messages leave the window."""
