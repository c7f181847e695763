"""What can go wrong with the items of a store."""

from app.errors import UnprocessableError


class StoreAnswerTooLargeError(UnprocessableError):
    code = "store_answer_too_large"
    title = "Answer would be too large"

    def __init__(self, limit: int, counted: str) -> None:
        super().__init__(
            f"The answer would have more than {limit} {counted}. Ask for less in one request, "
            "with `limit` and `offset`.",
            limit=limit,
        )


class TooManyTextsError(UnprocessableError):
    code = "too_many_texts"
    title = "Too many texts to index"

    def __init__(self, ordinal: int, limit: int, counted: str) -> None:
        """Of the operation `ordinal`; `counted` says of what there are more than `limit`."""
        super().__init__(
            f"The paths in `index` lead to more than {limit} {counted}. Nothing was written.",
            limit=limit,
            errors=[
                {"location": ["body", "operations", str(ordinal), "index"], "detail": "too many"}
            ],
        )
