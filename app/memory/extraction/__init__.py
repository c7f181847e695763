"""Room of extraction: messages become proposals, and proposals memories."""
