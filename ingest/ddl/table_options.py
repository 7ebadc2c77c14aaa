"""Options of tables, which CREATE TABLE and ALTER TABLE have behind the columns."""

from typing import Final

OPTIONS: Final = frozenset(
    {
        *("ENGINE", "TYPE", "AUTO_INCREMENT", "AUTOEXTEND_SIZE", "AVG_ROW_LENGTH", "CHECKSUM", "TABLE_CHECKSUM"),
        *("COMMENT", "COMPRESSION", "CONNECTION", "DELAY_KEY_WRITE", "ENCRYPTION", "ENGINE_ATTRIBUTE", "INSERT_METHOD"),
        *("KEY_BLOCK_SIZE", "MAX_ROWS", "MIN_ROWS", "PACK_KEYS", "PAGE_CHECKSUM", "PASSWORD", "ROW_FORMAT"),
        *("SECONDARY_ENGINE", "SECONDARY_ENGINE_ATTRIBUTE", "SEQUENCE", "STATS_AUTO_RECALC", "STATS_PERSISTENT"),
        *("STATS_SAMPLE_PAGES", "STORAGE", "TABLESPACE", "TRANSACTIONAL", "UNION", "ALGORITHM", "LOCK"),
    }
)
"""Options that a value follows, with or without `=` between."""
