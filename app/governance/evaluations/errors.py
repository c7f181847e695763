"""What can go wrong with kept evaluations."""

from app.errors import NotFoundError


class EvaluationNotFoundError(NotFoundError):
    code = "evaluation_not_found"
    title = "Evaluation not found"

    def __init__(self, evaluation_id: str) -> None:
        super().__init__(f"No evaluation {evaluation_id}.", evaluation_id=evaluation_id)
