"""What of a report is kept with the service: its figures alone."""

from app.evaluation.report import figures_of


def test_figures_are_kept_without_questions_and_what_says_how_they_were_made() -> None:
    report = {
        "kemem": "0.1", "date": "2026-11-26", "service": "http://x", "processors": 2,
        "data": {"name": "six"}, "settings": {"k": [5]},
        "total": {"recall": {5: 0.5}, "recall_interval": {"5": [0.4, 0.6]}},
        "contexts": {"2000": {"shown": 0.3, "questions": [{"question": "Who?"}]}},
        "questions": [{"question": "Who?"}], "embedding_models": ["m"],
    }  # fmt: skip

    assert figures_of(report) == {
        "total": {"recall": {"5": 0.5}, "recall_interval": {"5": [0.4, 0.6]}},
        "contexts": {"2000": {"shown": 0.3}},
        "embedding_models": ["m"],
    }
