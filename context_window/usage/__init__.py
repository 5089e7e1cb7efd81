"""Usage figures: the report that displays and the command line show, its computation, and usage reported by providers."""
