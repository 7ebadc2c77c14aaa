"""`python -m tests.servers get [NAME…]` downloads servers; `python -m tests.servers list` says what is there."""

import argparse
import sys

from tests.servers import DISTRIBUTIONS, OTHER_VERSIONS
from tests.servers.packages import ServerPackagesError


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.servers", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    get = commands.add_parser("get", help="download servers that are not there yet")
    get.add_argument("names", nargs="*", help=f"which ones; {' and '.join(DISTRIBUTIONS)} when none is named")
    commands.add_parser("list", help="say which servers are available")
    arguments = parser.parse_args()
    known = DISTRIBUTIONS | OTHER_VERSIONS

    if arguments.command == "get":
        if unknown := set(arguments.names) - set(known):
            parser.error(f"there is no {', '.join(sorted(unknown))}, only {', '.join(known)}")
        try:
            for name in arguments.names or DISTRIBUTIONS:
                known[name].get()
        except ServerPackagesError as error:
            print(error, file=sys.stderr)
            return 3
    for distribution in known.values():
        state = f"{distribution.version} in {distribution.root}" if distribution.available() else distribution.why_not()
        print(f"{distribution.name:13} {state}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
