"""What can be wrong with the weights of a ranking."""


class InvalidWeightsError(ValueError):
    """Weights that are no shares of one whole, or out of bounds; a fault of the configuration."""
