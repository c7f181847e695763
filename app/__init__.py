"""The KeMem service: rooms in a row, workshops beside them; `docs/map.md` shows the plan."""
