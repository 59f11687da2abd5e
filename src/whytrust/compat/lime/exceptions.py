"""The one exception that lime has of its own."""


class LimeError(ValueError):
    """Something was asked for that means nothing; here also a ValueError, as all such errors of whytrust are."""
