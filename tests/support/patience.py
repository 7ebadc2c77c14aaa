"""How long tests wait for a server or a process before they call it hanging."""

from typing import Final

# A machine whose load is 20 is that much slower. A test that fails waits this long, and no other.
PATIENCE_SECONDS: Final = 1800
