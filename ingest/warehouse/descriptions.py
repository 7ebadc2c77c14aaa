"""Descriptions of the columns of the raw tables. A column means the same in every table."""

COLUMN_DESCRIPTIONS: dict[str, str] = {
    "source_id": "Name of the stream of changes, as given with --source",
    "epoch": "0-based number of the unbroken series of files in the source; a failover or RESET opens the next",
    "binlog_file": "Name of the binlog file without its folder",
    "segment_start": "Offset in the file at which the landed segment starts; 0 for a compacted one, the whole file",
    "segment_end": "Offset in the file just after the segment's last byte",
    "start_pos": "Physical offset of the event's first byte in the file; for an event inside a payload, that of the "
    "payload; in sources, the offset in start_file of the first event that is landed",
    "end_pos": "Physical offset just after the event's last byte in the file; for an event inside a payload, that of "
    "the payload",
    "payload_ordinal": "Position of the event inside a compressed transaction payload; 0 for an event outside a "
    "payload",
    "row_ordinal": "0-based position of the row inside its event",
    "transaction_pos": "start_pos of the transaction that the event belongs to",
    "event_type": "Kind of the change or event",
    "event_timestamp": "When the statement began, by the server's clock, in whole seconds, UTC",
    "server_id": "server_id of the server that wrote the change first",
    "gtid": "Global transaction identifier, NULL where the server writes none",
    "table_map_id": "Hash of the table map that the row was decoded with; key of table_maps",
    "schema_name": "Schema (database) of the table",
    "table_name": "Name of the table",
    "column_count": "Number of columns of the table when the row was written",
    "before_values": "Values before the change, in column order, as text; all NULL for an INSERT",
    "after_values": "Values after the change, in column order, as text; all NULL for a DELETE",
    "before_columns": "0-based ordinals present in a partial before image; NULL when the image is full",
    "after_columns": "0-based ordinals present in a partial after image; NULL when the image is full",
    "undecoded_columns": "0-based ordinals of columns whose new value is unknown because the log has only a change "
    "of the JSON document (see json_changes); NULL when there are none",
    "json_changes": "Changes of JSON documents that the log does not contain, in order: operation (replace, insert, "
    "remove), path, value (JSON text, NULL for remove); NULL when there are none",
    "xid": "Transaction number of the storage engine, NULL for transactions that end without an XID event",
    "xa_xid": "Identifier of the XA transaction as XA COMMIT takes it, such as X'6162',X'',1; NULL outside of XA",
    "thread_id": "Connection id of the client on the server that first wrote the change",
    "started_at": "Timestamp of the transaction's first event, UTC",
    "committed_at": "When the transaction committed on this server; in microseconds where the server logs it, UTC",
    "original_committed_at": "When the transaction committed on the server that wrote it first, UTC",
    "is_ddl": "Whether the transaction is a statement that changes the schema",
    "outcome": "How the transaction ended: commit, rollback, xa_prepare or none",
    "events": "Number of events",
    "row_events": "Number of changed rows in the log, those that were rolled back too",
    "transactions": "Number of transactions",
    "inserts": "Number of inserted rows in the log",
    "updates": "Number of updated rows in the log",
    "deletes": "Number of deleted rows in the log",
    "rolled_back_ranges": "Events whose rows ROLLBACK TO SAVEPOINT took back, or may have; end excluded; NULL for none",
    "kind": "Kind of the event: QUERY, LOAD (LOAD DATA of a 4.x server), ROWS_QUERY or ANNOTATE (text of the "
    "statement whose rows follow); INTVAR, RAND or USER_VAR (context of the next statement); START_ALTER or "
    "ROLLBACK_ALTER (begin or failure of a two-phase ALTER)",
    "default_schema": "Schema that the statement ran in",
    "error_code": "Error that the statement ended with on the server that wrote it; 0 when it succeeded",
    "sql_mode": "sql_mode that the statement ran with, NULL when the event does not contain it",
    "time_zone": "time_zone that the statement ran with, NULL when the event does not contain it",
    "character_set_client": "Character set of the statement's text, NULL when the event does not contain it",
    "character_set_connection": "Character set that literals of the statement were converted to, NULL when the event "
    "does not contain it or an older binloom landed it",
    "collation_server": "Collation of a database that is created without one, NULL when the event does not contain "
    "it or servers name it differently",
    "sql_text": "Text of the statement; for the context of a statement, the text that mysqlbinlog prints, such as "
    "SET INSERT_ID=5",
    "dml_targets": "Tables whose rows the statement may change, with the verb; SELECT is the call of a stored "
    "function. A name is NULL where the text has none: a function may change any table. Empty if it changes no rows, "
    "or rows follow it; NULL if an older binloom landed it",
    "digest": "SHA-256 of digest_text, in hex; if the source has masks, keyed with their key. NULL for BEGIN, COMMIT "
    "and ROLLBACK, and where an older binloom landed the statement",
    "digest_text": "Statement without its values, as performance_schema of MySQL has it; NULL if the source has masks",
    "tags": "Tags in the comments of the statement, in the form of sqlcommenter or marginalia; if the source has "
    "masks, only those of known keys. NULL for none",
    "columns": "Columns in order: in table_maps, the table's columns; in ddl_actions, the columns that the action "
    "defines",
    "hint": "Source of the names and types that the wire format lacks: metadata, snapshot or none",
    "hints_used": "JSON object by schema and table: a hash of the definition that the values were decoded with, for "
    "each table whose values depend on it",
    "snapshot_epochs": "Epoch in which each snapshot with a position was taken, by snapshot_id: recorded in it, or "
    "derived from its file and time",
    "row_event_counts": "Rows of the segment by table map and hour (yyyy-MM-dd-HH, UTC): how many of each kind, their "
    "first and last position, and their earliest and latest time; NULL where an older binloom landed the segment",
    "unknown_hints": "Columns whose text depends on an unknown fact: ordinal, and the fact (sign, charset, labels, "
    "or type); NULL when there are none",
    "masked_columns": "Columns that are masked, with tag and method; ordinal: 0-based place in the row images; "
    "fingerprint: equal for masks that mask alike, and no key can be found from it; NULL when there are none",
    "reason": "Why it could not be decoded; for a gap: purged (the server deleted logs that binloom had not read), "
    "reset (the logs started over, the rest of the old ones is lost) or diverged (the server lacks transactions of "
    "an earlier server)",
    "detail": "More about the reason; for an action, an effect that no other column has, or why the statement was "
    "not understood",
    "action_ordinal": "0-based position of the action in its statement",
    "action": "What the action does: create_table, add_column and others, as the documentation lists them; other "
    "means that it changes no columns",
    "statement_type": "Verb and object of the statement, such as ALTER TABLE",
    "other_schema_name": "Schema of other_table_name; for convert_character_set without a table's own default, the "
    "schema whose default applies",
    "other_table_name": "The new name in a rename, the model in create_like, the other table in exchange_partition",
    "place": "Position of the column: first, after (see after_column), or NULL for the end, or for its present "
    "position",
    "after_column": "Column that precedes the new position",
    "key_columns": "Columns of the primary key, in its order",
    "is_conditional": "Whether the action may do nothing: IF EXISTS, IF NOT EXISTS, the drop of OR REPLACE",
    "server_uuid": "server_uuid of the server, NULL when binloom read only its files",
    "host": "Host that binloom connected to, NULL for files",
    "port": "Port that binloom connected to, NULL for files",
    "flavor": "mysql or mariadb",
    "server_version": "Version of the server that wrote the file",
    "observed_at": "When binloom saw it, UTC",
    "change": "epoch_opened or server_changed; the latest epoch_opened of an epoch counts, because an opening may be "
    "given up before anything of the epoch is received",
    "start_file": "File in which landing of the epoch begins, in the row that opened the epoch; NULL for its first "
    "file",
    "gtids_before": "GTID set that is not landed in the epoch: an earlier epoch has it, or it precedes the requested "
    "start; in the row that opened the epoch; NULL when there is none",
    "file_sequence": "Number at the end of the file's name; orders the files of an epoch",
    "file_size": "Size of the file in bytes when it was scanned",
    "fingerprint": "SHA-256 of the format description event; stays the same while the file grows and when it is closed",
    "format_version": "Version of the binlog format: 1, 3 or 4",
    "checksum_algorithm": "CRC32 or NONE, NULL when the server predates checksums",
    "is_in_use": "Whether the header says that the server still writes to the file, or did not close it",
    "is_relay_log": "Whether the file is a relay log of a replica",
    "is_encrypted": "Whether the server encrypted the file",
    "created_at": "When the server created the file, UTC; NULL when the file does not contain it",
    "first_event_at": "Timestamp of the first event that has one, UTC",
    "last_event_at": "Timestamp of the last event that has one, UTC",
    "event_counts": "Number of events of each type",
    "bytes_covered": "Bytes of the magic number and of all whole, valid events",
    "checksum_failures": "Number of events whose checksum did not match",
    "first_misplaced_pos": "Offset of the first event whose recorded end is not its own: bytes before it were "
    "removed or inserted; NULL when there is none, or the server records no ends",
    "previous_gtids": "GTID set that precedes the file, NULL when the server writes none",
    "next_binlog_file": "Name of the next file in the ROTATE event at the end, NULL without one",
    "scanned_at": "When binloom scanned the file, UTC",
    "status": "For a segment: in_progress, completed, failed, skipped, replaced (by a compacted one), removed "
    "(files deleted), expired (rows dropped). For a gap: found (following stopped), accepted (--accept-gap), "
    "unproven (maybe nothing is missing), filled (read later)",
    "min_event_at": "Earliest timestamp of a changed row or transaction in the segment, UTC",
    "max_event_at": "Latest timestamp of a changed row or transaction in the segment, UTC",
    "error": "Why the segment failed or was skipped, NULL otherwise",
    "table_filter": "Filter on schemas and tables that the segment was landed with, NULL without a filter",
    "gtids": "GTIDs of the segment's transactions as a set in the server's notation; NULL without GTIDs",
    "run_id": "Identifier of the ingest run that recorded it",
    "recorded_at": "When binloom recorded the row, UTC",
    "erasure_id": "Random identifier of an erasure",
    "selection_hash": "Salt and PBKDF2 hash of the erased keys: somebody who knows the keys can check them",
    "erased_statements": "Number of statements whose text was replaced by a token",
    "erased_by": "Name of the user of the operating system who ran the erasure; NULL if an older binloom ran it",
    "erasure_reason": "Reason that was given for the erasure, such as the number of a ticket; NULL without any",
    "gap_id": "Hash of the source and of the position before the gap",
    "from_epoch": "Epoch of the last transaction that was read before the gap",
    "from_file": "File of the last transaction that was read before the gap",
    "from_pos": "Offset in from_file just after the last transaction that was read before the gap",
    "from_gtids": "GTID set that had been read before the gap, NULL without GTIDs",
    "to_epoch": "Epoch of the first event that can be read after the gap",
    "to_file": "File of the first event that can be read after the gap",
    "to_pos": "Offset in to_file of the first event that can be read after the gap",
    "to_gtids": "GTID set that precedes to_file on the server, NULL without GTIDs",
    "missing_gtids": "GTIDs in the gap, NULL when they are not known",
    "snapshot_id": "Hash of the snapshot's content and position",
    "taken_at": "When the snapshot or baseline was taken, UTC",
    "binlog_pos": "Offset in binlog_file at which the snapshot or baseline was taken, NULL when unknown",
    "gtid_executed": "GTID set that the server had executed when the snapshot or baseline was taken, NULL when unknown",
    "origin": "Source of the snapshot: server, files, ddl (statements of a dump) or binlog; of a baseline: server, "
    "dump or binlog (rows that the log gave, carried when its files expired)",
    "logs_cascades": "Whether the server logs the changes that foreign keys make in referring rows, NULL when no "
    "server was asked",
    "column_name": "Name of the column",
    "ordinal_position": "1-based position of the column in its table or key",
    "column_key": "PRI, UNI, MUL or empty, as in information_schema",
    "primary_key_ordinal": "1-based position of the column in the primary key, NULL for other columns",
    "data_type": "Name of the type without length and attributes",
    "column_type": "Type with length and attributes",
    "character_set": "Character set of the column, NULL for types without one; in an action, the new default; in "
    "schema_defaults, the default of the schema or table",
    "collation": "Collation of the column, NULL for types without one; in an action, the new default; in "
    "schema_defaults, the default of the schema or table",
    "is_nullable": "Whether the column takes NULL",
    "column_default": "Default as in information_schema, NULL without one",
    "is_generated": "Whether the column is computed from others",
    "extra": "EXTRA as in information_schema, such as auto_increment",
    "column_comment": "Comment that the column has on the server, NULL without one",
    "constraint_name": "Name of the key or constraint; PRIMARY for the primary key",
    "referenced_schema_name": "Schema of the table that a foreign key refers to",
    "referenced_table_name": "Table that a foreign key refers to",
    "referenced_column_name": "Column that a foreign key refers to",
    "baseline_id": "Hash of the source, of the position and of the time or file that the rows come from",
    "column_names": "Names of the columns whose values are known, in the order of row_values",
    "primary_key_ordinals": "0-based places of the primary key's columns in row_values, ascending; NULL without a key",
    "row_count": "Number of rows of the table",
    "is_complete": "Whether these are all rows of the table; FALSE only for the known rows of expired files, NULL for "
    "all rows",
    "position_proof": "How the position of rows of a live server is known: server (it tells it), read_lock (a lock "
    "held all commits), log (rows that changed around the beginning were compared with the log, and carried to the "
    "position); NULL for other rows",
    "known_columns": "0-based places in column_names of the values that are known, NULL when all of them are",
    "row_number": "0-based place of the row among the rows of its table, in the order in which they were read",
    "row_values": "Values of the row, in the order of column_names, as text",
    "update_rule": "What happens to the referring row when the key it refers to changes",
    "delete_rule": "What happens to the referring row when the row it refers to is deleted",
    "history_id": "Hash of a published set of versions and bindings",
    "published_at": "When the set was published, UTC",
    "evidence_hash": "Hash of everything that the set follows from",
    "evidence": "Origin of the definition: table_map, snapshot or ddl",
    "evidence_id": "Table map, snapshot, or file and position of the statement that gives the definition",
    "table_version_id": "Version of the table that gave the columns their names; key of table_versions: a hash of the "
    "definition, and of the position from which on it is in force",
    "definition_id": "Hash of the table and its columns",
    "confidence": "exact (the table map has the names itself), in_force, inferred or ambiguous; NULL if none fits",
    "valid_from_epoch": "Epoch of the first position; -1 for the beginning, NULL in a version of table maps",
    "valid_from_binlog_file": "File of the first position, NULL for the beginning",
    "valid_from_file_sequence": "Number of the file of the first position; -1 for the beginning",
    "valid_from_pos": "Offset of the first position; -1 for the beginning",
    "valid_to_epoch": "Epoch of the end; 2147483647 if it has none, NULL in a version of table maps",
    "valid_to_binlog_file": "File of the end, NULL if it has none",
    "valid_to_file_sequence": "Number of the file of the end",
    "valid_to_pos": "Offset of the end, excluded",
    "prefix_length": "Number of characters, or of bytes, that the key compares; NULL for whole values",
    "expression": "Expression that the key compares, or that its generated column has; NULL for other columns",
}
