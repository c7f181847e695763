"""The dialect of mem0's hosted API, as its unmodified clients speak it."""
