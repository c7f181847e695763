"""Errors of the guide."""

from app.errors import NotFoundError


class GuideNotBuiltError(NotFoundError):
    """The files of the guide are made from the checkout, and here nobody has made them."""

    code = "guide_not_built"
    title = "Guide not built"
