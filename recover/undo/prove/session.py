"""Settings of a session that decide what the statements of a script mean, and the comparison with a server."""

from typing import Final

MEANING: Final = {
    "character_set_client": "'utf8mb4'",
    "character_set_results": "'utf8mb4'",
    "collation_connection": "'utf8mb4_general_ci'",
    "time_zone": "'+00:00'",
    "sql_mode": "'STRICT_TRANS_TABLES,NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES,NO_ENGINE_SUBSTITUTION'",
}
"""Settings that decide what a literal and a comparison mean."""

SESSION: Final = MEANING | {
    "foreign_key_checks": "1",
    "unique_checks": "1",
    "autocommit": "1",
}
"""All settings that a script makes."""
