"""The KeMem service in eight layers; `docs/map.md` draws them."""
