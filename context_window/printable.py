"""Names made safe to print: see `session.printable`."""

from session.printable import printable

__all__ = ["printable"]
