"""Tokens in place of erased values."""

import re
from typing import Final

TOKEN: Final = re.compile(r"erased/[0-9a-f]{32}")
"""A token. Equal values of one erasure have equal tokens."""
