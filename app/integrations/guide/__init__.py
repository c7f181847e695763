"""The manual as a site, built from `docs/` and the code, served without the internet."""
