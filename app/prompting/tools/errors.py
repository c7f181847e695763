"""Refusals of a call, which are answers to the model and no failures over HTTP."""


class CallRefusedError(Exception):
    """The call is not carried out; `text` says to the model what to do instead."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text
