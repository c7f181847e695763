"""What a model is told when a call does not come to pass; none of it is a failure over HTTP."""


class CallRefusedError(Exception):
    """The call was understood and is not carried out; `text` tells the model what to do instead."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text
