"""Models and text: what reads, ranks and writes language. Knows no table."""
