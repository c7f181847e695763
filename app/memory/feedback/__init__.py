"""Feedback: what callers think of a memory."""
