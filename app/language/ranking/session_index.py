"""Which turn is next to which: rows of a bucket as turns of their sessions. Pure arithmetic."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.language.ranking.bm25 import Floats, Ints

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class SessionIndex:
    """Rows sorted by session and order; session 0 is none."""

    starts: Ints
    """Of the sessions, and of the rows of none."""
    number: Ints
    """Of the row's start."""
    real: Flags
    """Per start: it is a session's."""
    beside: tuple[Floats, Floats]
    """1 where a row and the one after it, or two after it, are of one session."""

    @classmethod
    def of(cls, session: Ints, apart: Flags | None = None) -> "SessionIndex":
        """Index rows that are sorted by session and order; those `apart` have no neighbours."""
        first = np.ones(len(session), dtype=np.bool_)
        first[1:] = session[1:] != session[:-1]
        starts = np.flatnonzero(first)
        joined = session != 0 if apart is None else (session != 0) & ~apart
        next_row, second_row = (
            ((session[gap:] == session[:-gap]) & joined[gap:]).astype(np.float32) for gap in (1, 2)
        )
        return cls(starts, np.cumsum(first) - 1, session[starts] != 0, (next_row, second_row))

    def gather(self, values: Floats, near: float, far: float) -> Floats:
        """Return, along the last axis, the sum of what stands one and two rows away."""
        sums = np.zeros_like(values)
        for gap, weight in ((1, near), (2, far)):
            if weight and values.shape[-1] > gap:
                link = self.beside[gap - 1] * np.float32(weight)
                sums[..., gap:] += values[..., :-gap] * link
                sums[..., :-gap] += values[..., gap:] * link
        return sums

    def after(self, values: Floats) -> Floats:
        """Return for each row the value of the one before it in its session, else 0."""
        passed = np.zeros_like(values)
        passed[1:] = values[:-1] * self.beside[0]
        return passed

    def totals(self, values: Floats) -> Floats:
        """Return, along the last axis, the sum of each session."""
        if not self.real.any():
            return np.zeros((*values.shape[:-1], 0), dtype=np.float32)
        sums: Floats = np.add.reduceat(values, self.starts, axis=-1)
        return sums[..., self.real]

    def spread(self, totals: Floats) -> Floats:
        """Return for each row what its session has; 0 for a row of none."""
        values = np.zeros(len(self.starts), dtype=np.float32)
        values[self.real] = totals
        return values[self.number]
