"""What tells whether a graph is still alive."""


class Token:
    """Something that goes when the node that holds it goes."""
