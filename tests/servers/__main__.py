"""`python -m tests.servers get [NAME…]` downloads servers; `python -m tests.servers list` lists the available ones."""

import argparse
import sys

from tests.servers import ALL_DISTRIBUTIONS
from tests.servers.packages import ServerPackagesError


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.servers", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    get = commands.add_parser("get", help="download servers that are not there yet")
    get.add_argument("names", nargs="*", help=f"which ones; all of {', '.join(ALL_DISTRIBUTIONS)} when none is named")
    commands.add_parser("list", help="say which servers are available")
    arguments = parser.parse_args()

    if arguments.command == "get":
        if unknown := set(arguments.names) - set(ALL_DISTRIBUTIONS):
            parser.error(f"there is no {', '.join(sorted(unknown))}, only {', '.join(ALL_DISTRIBUTIONS)}")
        try:
            for name in arguments.names or ALL_DISTRIBUTIONS:
                ALL_DISTRIBUTIONS[name].get()
        except ServerPackagesError as error:
            print(error, file=sys.stderr)
            return 3
    for distribution in ALL_DISTRIBUTIONS.values():
        state = f"{distribution.version} in {distribution.root}" if distribution.available() else distribution.why_not()
        print(f"{distribution.name:13} {state}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
