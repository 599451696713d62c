"""The command `rayapp`: a library that does not load is one sentence, not a stack trace."""

import sys
from importlib import metadata

EXIT_CONFIG = 2


def main() -> None:
    """As `rayapp.local.cli.app.main`, which needs libraries that a broken installation lacks."""
    try:
        from rayapp.local.cli.app import main as run
    except ImportError as error:
        if (error.name or "").partition(".")[0] in {"", "rayapp", "jobs"}:
            raise
        print(damaged(error), file=sys.stderr)
        sys.exit(EXIT_CONFIG)
    run()


def damaged(error: ImportError) -> str:
    """Which library does not load, and the command that installs it again."""
    module = (error.name or "").partition(".")[0]
    owners = metadata.packages_distributions().get(module, [])
    what = f"{owners[0]}=={metadata.version(owners[0])}" if owners else "-r requirements.lock"
    option = "--force-reinstall --no-deps " if owners else ""
    return (
        f"The library {module} does not load ({error.msg}): install it again with "
        f"`{sys.executable} -m pip install {option}{what}`."
    )


if __name__ == "__main__":
    main()
