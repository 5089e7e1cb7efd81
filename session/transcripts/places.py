"""The folders in which tools write their logs. Each reader names its own as `PLACES`; `context_window/spend/discovery.py` looks there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple


class Place(NamedTuple):
    """A folder of a tool, and its logs below it.

    Attributes:
        folder: The folder: `~` stands for the user's home, `$data` and `$config` for the folders of data and settings there.
        pattern: A pattern of paths below it, with `*` and `**`.
            Empty if only a variable can name it.
        variable: The variable that names another folder, if it is set; empty if there is none.
    """

    folder: str
    pattern: str
    variable: str = ""

    def where(self, environment: Mapping[str, str], home: Path) -> Iterator[tuple[str, str]]:
        """Yield the folder and the pattern, for the process's variables and the user's home folder."""
        data = environment.get("XDG_DATA_HOME") or f"{home}/.local/share"
        config = environment.get("XDG_CONFIG_HOME") or f"{home}/.config"
        root, _, rest = self.folder.partition("/")
        folder = "/".join(filter(None, ({"~": str(home), "$data": data, "$config": config, "": ""}[root], rest)))
        if folder := environment.get(self.variable) or folder:
            yield folder, self.pattern
