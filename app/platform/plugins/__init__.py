"""Code of the deployment that is asked at fixed points, within limits."""
