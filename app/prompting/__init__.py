"""What the model sees: contexts, summaries, checkpoints, blocks, documents and tools."""
