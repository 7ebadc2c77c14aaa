"""`python -m tests.servers get [NAME…]` downloads servers; `python -m tests.servers list` says what is there."""

import argparse
import sys

from tests.servers import DISTRIBUTIONS
from tests.servers.packages import ServerPackagesError


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.servers", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    get = commands.add_parser("get", help="download servers that are not there yet")
    get.add_argument("names", nargs="*", choices=[[], *DISTRIBUTIONS], help="which ones; all when none is named")
    commands.add_parser("list", help="say which servers are available")
    arguments = parser.parse_args()

    if arguments.command == "get":
        try:
            for name in arguments.names or DISTRIBUTIONS:
                DISTRIBUTIONS[name].get()
        except ServerPackagesError as error:
            print(error, file=sys.stderr)
            return 3
    for distribution in DISTRIBUTIONS.values():
        state = f"{distribution.version} in {distribution.root}" if distribution.available() else distribution.why_not()
        print(f"{distribution.name:10} {state}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
