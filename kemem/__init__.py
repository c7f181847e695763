"""KeMem for Python programs: the version now, the client with the write pipeline."""

__version__ = "0.1.0"
