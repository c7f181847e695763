"""Processors: code of the deployment that is called at fixed points, within limits."""
