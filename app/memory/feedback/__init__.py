"""Room of feedback: what callers think of a memory."""
