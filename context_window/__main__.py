"""The program `context-window`, also `python -m context_window`: the status line by itself, everything else through the command line."""

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the program and exit with its code.

    `context-window statusline` runs after every message of an assistant, and with `--pause` before every prompt. It does without the
    command line, which takes longer to load than the status line takes.
    """
    try:
        if sys.argv[1:] == ["statusline"]:
            from .statusline import main as print_status_line

            sys.exit(print_status_line())
        if sys.argv[1:] == ["statusline", "--pause"]:
            from .statusline import pause_main

            sys.exit(pause_main())
        from .cli import main as run_command_line

        run_command_line()
    except KeyboardInterrupt:  # while the modules are loaded
        sys.exit(130)


if __name__ == "__main__":
    main()
