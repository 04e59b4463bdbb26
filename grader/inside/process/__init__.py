"""The warm process of a box and what keeps its children within their limits."""
