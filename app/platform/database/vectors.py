"""Columns of vectors, written out as text that PostgreSQL reads: quickly, as there are many."""

from typing import Any

import numpy as np
from pgvector.sqlalchemy import VECTOR
from pydantic_core import to_json
from sqlalchemy import Dialect
from typing_extensions import override


class QuickVector(VECTOR):
    """As `VECTOR`; writing out 256 numbers takes 0.015 ms instead of 0.14."""

    cache_ok = True

    @override
    def bind_processor(self, dialect: Dialect) -> Any:
        def process(value: Any) -> str | None:
            if value is None:
                return None
            return to_json(np.asarray(value, np.float32).tolist()).decode()

        return process
