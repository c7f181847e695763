"""Bytes of a document become text with page numbers, and text becomes passages."""
