"""Measurements, each one command that prints ratios and writes a result file."""
