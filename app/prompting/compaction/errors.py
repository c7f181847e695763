"""What can go wrong with summaries."""

from app.errors import NotFoundError


class SummaryNotFoundError(NotFoundError):
    code = "summary_not_found"
    title = "Summary not found"

    def __init__(self, summary_id: str) -> None:
        super().__init__(f"There is no summary {summary_id}.")
