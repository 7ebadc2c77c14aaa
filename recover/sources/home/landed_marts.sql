-- Generated from models/ by `make generate`: see tools/duckdb_models.py.

create view binloom_staging.stg_binlog__segments as
WITH landed AS (
  SELECT
    *
  FROM binlog_raw.segments
), ranked AS (
  SELECT
    *,
    ROW_NUMBER() OVER (
      PARTITION BY source_id, epoch, binlog_file, segment_start
      ORDER BY recorded_at DESC, ARRAY_POSITION(
        [
          'expired',
          'removed',
          'replaced',
          'completed',
          'skipped',
          'failed',
          'in_progress'
        ],
        status
      ) NULLS FIRST, row_event_counts IS NULL NULLS FIRST
    ) AS recency
  FROM landed
), final AS (
  SELECT
    source_id,
    epoch,
    binlog_file,
    segment_start,
    segment_end,
    status,
    row_events,
    transactions,
    min_event_at,
    max_event_at,
    error,
    run_id,
    recorded_at,
    table_filter,
    gtids,
    row_event_counts,
    CASE
      WHEN segment_start = 0
      THEN status = 'completed'
      ELSE NOT status IN ('replaced', 'removed', 'expired')
    END AS is_current
  FROM ranked
  WHERE
    recency = 1
)
SELECT
  *
FROM final;

create view binloom_staging.stg_binlog__row_events as
WITH landed AS (
  SELECT
    landed.*
  FROM binlog_raw.row_events AS landed
  ANTI JOIN binloom_staging.stg_binlog__segments AS unfinished
    ON landed.source_id = unfinished.source_id
    AND landed.epoch = unfinished.epoch
    AND landed.binlog_file = unfinished.binlog_file
    AND landed.segment_start = unfinished.segment_start
    AND unfinished.status IN ('in_progress', 'failed', 'replaced', 'expired')
), final AS (
  SELECT
    source_id,
    epoch,
    binlog_file,
    segment_start,
    start_pos,
    end_pos,
    payload_ordinal,
    row_ordinal,
    transaction_pos,
    event_type,
    event_timestamp,
    server_id,
    gtid,
    table_map_id,
    schema_name,
    table_name,
    column_count,
    before_values,
    after_values,
    before_columns,
    after_columns,
    undecoded_columns,
    json_changes
  FROM landed
)
SELECT
  *
FROM final;

create view binloom_staging.stg_binlog__binlog_files as
WITH landed AS (
  SELECT
    *
  FROM binlog_raw.binlog_files
), expired_segments AS (
  SELECT
    *
  FROM binloom_staging.stg_binlog__segments
  WHERE
    status = 'expired'
), kept AS (
  SELECT
    landed.*
  FROM landed
  ANTI JOIN expired_segments
    ON landed.source_id = expired_segments.source_id
    AND landed.epoch = expired_segments.epoch
    AND landed.binlog_file = expired_segments.binlog_file
), ranked AS (
  SELECT
    *,
    ROW_NUMBER() OVER (
      PARTITION BY source_id, epoch, binlog_file
      ORDER BY scanned_at DESC, file_size DESC
    ) AS recency
  FROM kept
), final AS (
  SELECT
    source_id,
    epoch,
    binlog_file,
    file_sequence,
    file_size,
    fingerprint,
    format_version,
    server_version,
    flavor,
    checksum_algorithm,
    is_in_use,
    is_relay_log,
    is_encrypted,
    created_at,
    first_event_at,
    last_event_at,
    events,
    event_counts,
    bytes_covered,
    checksum_failures,
    first_misplaced_pos,
    previous_gtids,
    next_binlog_file,
    scanned_at
  FROM ranked
  WHERE
    recency = 1
)
SELECT
  *
FROM final;

create view binloom_intermediate.int_completed_segments as
WITH segments AS (
  SELECT
    *
  FROM binloom_staging.stg_binlog__segments
), binlog_files AS (
  SELECT
    *
  FROM binloom_staging.stg_binlog__binlog_files
), final AS (
  SELECT
    segments.source_id,
    segments.epoch,
    segments.binlog_file,
    segments.segment_start,
    segments.segment_end,
    COALESCE(
      binlog_files.file_sequence,
      COALESCE(TRY_CAST(REGEXP_EXTRACT(segments.binlog_file, '([0-9]+)$', 1) AS BIGINT), 0)
    ) AS file_sequence,
    DENSE_RANK() OVER (
      ORDER BY segments.source_id NULLS FIRST, segments.epoch NULLS FIRST, segments.binlog_file NULLS FIRST
    ) AS file_number,
    segments.row_events,
    segments.row_event_counts,
    segments.transactions,
    segments.table_filter,
    segments.recorded_at AS landed_at
  FROM segments
  LEFT JOIN binlog_files
    ON segments.source_id = binlog_files.source_id
    AND segments.epoch = binlog_files.epoch
    AND segments.binlog_file = binlog_files.binlog_file
  WHERE
    segments.status = 'completed'
)
SELECT
  *
FROM final;

create view binloom_staging.stg_binlog__schema_histories as
WITH landed AS (
  SELECT
    *
  FROM binlog_raw.schema_histories
), latest AS (
  SELECT
    source_id,
    ARG_MAX(
      {'history_id': history_id, 'snapshot_epochs': snapshot_epochs, 'published_at': published_at},
      published_at
    ) AS history
  FROM landed
  GROUP BY
    source_id
), final AS (
  SELECT
    source_id,
    history.history_id,
    history.snapshot_epochs,
    history.published_at
  FROM latest
)
SELECT
  *
FROM final;

create view binloom_staging.stg_binlog__table_bindings as
WITH landed AS (
  SELECT
    *
  FROM binlog_raw.table_bindings
), schema_histories AS (
  SELECT
    *
  FROM binloom_staging.stg_binlog__schema_histories
), final AS (
  SELECT
    landed.source_id,
    landed.table_map_id,
    landed.table_version_id,
    landed.schema_name,
    landed.table_name,
    landed.column_count,
    landed.column_names,
    landed.primary_key_ordinals,
    landed.confidence,
    landed.reason,
    landed.detail,
    landed.valid_from_epoch,
    landed.valid_from_file_sequence,
    landed.valid_from_pos,
    landed.valid_to_epoch,
    landed.valid_to_file_sequence,
    landed.valid_to_pos
  FROM landed
  INNER JOIN schema_histories
    ON landed.source_id = schema_histories.source_id
    AND landed.history_id = schema_histories.history_id
)
SELECT
  *
FROM final;

create view binloom_staging.stg_binlog__table_maps as
WITH landed AS (
  SELECT
    *
  FROM binlog_raw.table_maps
), ranked AS (
  SELECT
    *,
    ROW_NUMBER() OVER (PARTITION BY source_id, table_map_id ORDER BY column_count NULLS FIRST) AS copy
  FROM landed
), final AS (
  SELECT
    table_map_id,
    source_id,
    schema_name,
    table_name,
    column_count,
    "columns",
    hint,
    unknown_hints,
    masked_columns
  FROM ranked
  WHERE
    copy = 1
)
SELECT
  *
FROM final;

create view binloom_intermediate.int_table_map_bindings as
WITH bindings AS (
  SELECT
    *
  FROM binloom_staging.stg_binlog__table_bindings
), table_maps AS (
  SELECT
    *
  FROM binloom_staging.stg_binlog__table_maps
), final AS (
  SELECT
    bindings.source_id,
    bindings.table_map_id,
    bindings.table_version_id,
    bindings.schema_name,
    bindings.table_name,
    bindings.column_count,
    bindings.column_names,
    bindings.primary_key_ordinals,
    bindings.confidence,
    bindings.reason,
    bindings.detail,
    table_maps.unknown_hints,
    table_maps.masked_columns,
    bindings.valid_from_epoch,
    bindings.valid_from_file_sequence,
    bindings.valid_from_pos,
    bindings.valid_to_epoch,
    bindings.valid_to_file_sequence,
    bindings.valid_to_pos
  FROM bindings
  INNER JOIN table_maps
    ON bindings.source_id = table_maps.source_id
    AND bindings.table_map_id = table_maps.table_map_id
)
SELECT
  *
FROM final;

create view binloom_intermediate.int_row_events_bound as
WITH row_events AS (
  SELECT
    *
  FROM binloom_staging.stg_binlog__row_events
), completed_segments AS (
  SELECT
    *
  FROM binloom_intermediate.int_completed_segments
), bindings AS (
  SELECT
    *
  FROM binloom_intermediate.int_table_map_bindings
), final AS (
  SELECT
    row_events.*,
    STRFTIME(CAST(row_events.event_timestamp AS TIMESTAMP), '%Y-%m-%d-%H') AS event_hour,
    TRY_CAST(row_events.segment_start // 67108864 AS INT) AS file_part,
    completed_segments.file_sequence,
    (
      TRY_CAST(completed_segments.file_number AS BIGINT) << 40
    ) + row_events.transaction_pos AS transaction_key,
    bindings.table_version_id,
    bindings.column_names,
    bindings.primary_key_ordinals,
    bindings.confidence AS binding_confidence,
    bindings.masked_columns,
    CASE
      WHEN bindings.table_map_id IS NULL
      THEN 'unknown_table'
      WHEN NOT bindings.reason IS NULL
      THEN bindings.reason
      WHEN ARRAY_LENGTH(bindings.column_names) <> ARRAY_LENGTH(row_events.before_values)
      OR ARRAY_LENGTH(bindings.column_names) <> ARRAY_LENGTH(row_events.after_values)
      THEN 'column_count_mismatch'
      WHEN NOT bindings.unknown_hints IS NULL
      AND (
        (
          LEN(
            LIST_FILTER(
              bindings.unknown_hints,
              LAMBDA missing : CASE
                WHEN missing.hint = 'sign'
                THEN row_events.before_values[(
                  missing.ordinal
                ) + 1] LIKE '-%'
                ELSE NOT row_events.before_values[(
                  missing.ordinal
                ) + 1] IS NULL
              END
            )
          ) > 0
        )
        OR (
          LEN(
            LIST_FILTER(
              bindings.unknown_hints,
              LAMBDA missing : CASE
                WHEN missing.hint = 'sign'
                THEN row_events.after_values[(
                  missing.ordinal
                ) + 1] LIKE '-%'
                ELSE NOT row_events.after_values[(
                  missing.ordinal
                ) + 1] IS NULL
              END
            )
          ) > 0
        )
      )
      THEN 'value_uncertain'
    END AS reason,
    CASE
      WHEN bindings.table_map_id IS NULL
      THEN 'the table map of the row event was not landed'
      WHEN NOT bindings.reason IS NULL
      THEN bindings.detail
      WHEN ARRAY_LENGTH(bindings.column_names) <> ARRAY_LENGTH(row_events.before_values)
      OR ARRAY_LENGTH(bindings.column_names) <> ARRAY_LENGTH(row_events.after_values)
      THEN 'the row does not have as many values as its table map has columns'
      WHEN NOT bindings.unknown_hints IS NULL
      AND (
        (
          LEN(
            LIST_FILTER(
              bindings.unknown_hints,
              LAMBDA missing : CASE
                WHEN missing.hint = 'sign'
                THEN row_events.before_values[(
                  missing.ordinal
                ) + 1] LIKE '-%'
                ELSE NOT row_events.before_values[(
                  missing.ordinal
                ) + 1] IS NULL
              END
            )
          ) > 0
        )
        OR (
          LEN(
            LIST_FILTER(
              bindings.unknown_hints,
              LAMBDA missing : CASE
                WHEN missing.hint = 'sign'
                THEN row_events.after_values[(
                  missing.ordinal
                ) + 1] LIKE '-%'
                ELSE NOT row_events.after_values[(
                  missing.ordinal
                ) + 1] IS NULL
              END
            )
          ) > 0
        )
      )
      THEN 'nothing tells ' || CONCAT_WS(
        ' and ',
        'the sign of ' || NULLIF(
          ARRAY_TO_STRING(
            LIST_TRANSFORM(
              LIST_FILTER(bindings.unknown_hints, LAMBDA missing : missing.hint = 'sign'),
              LAMBDA missing : bindings.column_names[(
                missing.ordinal
              ) + 1]
            ),
            ', '
          ),
          ''
        ),
        'the character set of ' || NULLIF(
          ARRAY_TO_STRING(
            LIST_TRANSFORM(
              LIST_FILTER(bindings.unknown_hints, LAMBDA missing : missing.hint = 'charset'),
              LAMBDA missing : bindings.column_names[(
                missing.ordinal
              ) + 1]
            ),
            ', '
          ),
          ''
        ),
        'the labels of ' || NULLIF(
          ARRAY_TO_STRING(
            LIST_TRANSFORM(
              LIST_FILTER(bindings.unknown_hints, LAMBDA missing : missing.hint = 'labels'),
              LAMBDA missing : bindings.column_names[(
                missing.ordinal
              ) + 1]
            ),
            ', '
          ),
          ''
        ),
        'the type of ' || NULLIF(
          ARRAY_TO_STRING(
            LIST_TRANSFORM(
              LIST_FILTER(bindings.unknown_hints, LAMBDA missing : missing.hint = 'type'),
              LAMBDA missing : bindings.column_names[(
                missing.ordinal
              ) + 1]
            ),
            ', '
          ),
          ''
        )
      ) || ' at this position'
    END AS detail
  FROM row_events
  INNER JOIN completed_segments
    ON row_events.source_id = completed_segments.source_id
    AND row_events.epoch = completed_segments.epoch
    AND row_events.binlog_file = completed_segments.binlog_file
    AND row_events.segment_start = completed_segments.segment_start
  LEFT JOIN bindings
    ON row_events.source_id = bindings.source_id
    AND row_events.table_map_id = bindings.table_map_id
    AND (
      row_events.epoch > bindings.valid_from_epoch
      OR (
        row_events.epoch = bindings.valid_from_epoch
        AND (
          completed_segments.file_sequence > bindings.valid_from_file_sequence
          OR (
            completed_segments.file_sequence = bindings.valid_from_file_sequence
            AND row_events.start_pos >= bindings.valid_from_pos
          )
        )
      )
    )
    AND (
      row_events.epoch < bindings.valid_to_epoch
      OR (
        row_events.epoch = bindings.valid_to_epoch
        AND (
          completed_segments.file_sequence < bindings.valid_to_file_sequence
          OR (
            completed_segments.file_sequence = bindings.valid_to_file_sequence
            AND row_events.start_pos < bindings.valid_to_pos
          )
        )
      )
    )
)
SELECT
  *
FROM final;

create view binloom_staging.stg_binlog__transactions as
WITH landed AS (
  SELECT
    landed.*
  FROM binlog_raw.transactions AS landed
  ANTI JOIN binloom_staging.stg_binlog__segments AS unfinished
    ON landed.source_id = unfinished.source_id
    AND landed.epoch = unfinished.epoch
    AND landed.binlog_file = unfinished.binlog_file
    AND landed.segment_start = unfinished.segment_start
    AND unfinished.status IN ('in_progress', 'failed', 'replaced', 'expired')
), final AS (
  SELECT
    source_id,
    epoch,
    binlog_file,
    segment_start,
    start_pos,
    end_pos,
    gtid,
    xid,
    xa_xid,
    thread_id,
    server_id,
    started_at,
    committed_at,
    original_committed_at,
    is_ddl,
    outcome,
    events,
    row_events,
    inserts,
    updates,
    deletes,
    rolled_back_ranges
  FROM landed
)
SELECT
  *
FROM final;

create view binloom_intermediate.int_xa_transactions as
WITH transactions AS (
  SELECT
    *
  FROM binloom_staging.stg_binlog__transactions
  WHERE
    NOT xa_xid IS NULL
), completed_segments AS (
  SELECT
    *
  FROM binloom_intermediate.int_completed_segments
), followed AS (
  SELECT
    transactions.*,
    LEAD(
      {'transaction_id': CONCAT_WS(
        '/',
        transactions.source_id,
        transactions.epoch,
        transactions.binlog_file,
        transactions.start_pos
      ), 'outcome': transactions.outcome, 'events': transactions.events, 'committed_at': transactions.committed_at, 'original_committed_at': transactions.original_committed_at}
    ) OVER (
      PARTITION BY transactions.source_id, transactions.xa_xid
      ORDER BY transactions.epoch NULLS FIRST, completed_segments.file_sequence NULLS FIRST, transactions.start_pos NULLS FIRST
    ) AS following
  FROM transactions
  INNER JOIN completed_segments
    ON transactions.source_id = completed_segments.source_id
    AND transactions.epoch = completed_segments.epoch
    AND transactions.binlog_file = completed_segments.binlog_file
    AND transactions.segment_start = completed_segments.segment_start
), prepared AS (
  SELECT
    *,
    CASE
      WHEN following.outcome IN ('commit', 'rollback') AND following.events <= 2
      THEN following
    END AS xa_end
  FROM followed
  WHERE
    outcome = 'xa_prepare'
), final AS (
  SELECT
    source_id,
    epoch,
    binlog_file,
    segment_start,
    start_pos,
    xa_xid,
    xa_end.transaction_id AS xa_end_transaction_id,
    COALESCE(xa_end.outcome, outcome) AS outcome,
    CASE WHEN xa_end.outcome = 'commit' THEN xa_end.committed_at END AS committed_at,
    CASE WHEN xa_end.outcome = 'commit' THEN xa_end.original_committed_at END AS original_committed_at
  FROM prepared
)
SELECT
  *
FROM final;

create view binloom_intermediate.int_transactions_resolved as
WITH transactions AS (
  SELECT
    *
  FROM binloom_staging.stg_binlog__transactions
), completed_segments AS (
  SELECT
    *
  FROM binloom_intermediate.int_completed_segments
), xa_transactions AS (
  SELECT
    *
  FROM binloom_intermediate.int_xa_transactions
), final AS (
  SELECT
    transactions.source_id,
    transactions.epoch,
    transactions.binlog_file,
    transactions.segment_start,
    transactions.start_pos,
    transactions.end_pos,
    transactions.gtid,
    transactions.xid,
    transactions.xa_xid,
    xa_transactions.xa_end_transaction_id,
    transactions.thread_id,
    transactions.server_id,
    COALESCE(xa_transactions.outcome, transactions.outcome) AS outcome,
    completed_segments.file_sequence,
    completed_segments.file_number,
    transactions.events,
    transactions.row_events,
    transactions.inserts,
    transactions.updates,
    transactions.deletes,
    transactions.rolled_back_ranges,
    transactions.is_ddl,
    transactions.started_at,
    CASE
      WHEN transactions.outcome = 'xa_prepare'
      THEN xa_transactions.committed_at
      ELSE transactions.committed_at
    END AS committed_at,
    CASE
      WHEN transactions.outcome = 'xa_prepare'
      THEN xa_transactions.original_committed_at
      ELSE transactions.original_committed_at
    END AS original_committed_at,
    completed_segments.landed_at
  FROM transactions
  INNER JOIN completed_segments
    ON transactions.source_id = completed_segments.source_id
    AND transactions.epoch = completed_segments.epoch
    AND transactions.binlog_file = completed_segments.binlog_file
    AND transactions.segment_start = completed_segments.segment_start
  LEFT JOIN xa_transactions
    ON transactions.source_id = xa_transactions.source_id
    AND transactions.epoch = xa_transactions.epoch
    AND transactions.binlog_file = xa_transactions.binlog_file
    AND transactions.start_pos = xa_transactions.start_pos
)
SELECT
  *
FROM final;

create view binloom.row_changes as
WITH row_events AS (
  SELECT
    *
  FROM binloom_intermediate.int_row_events_bound
  WHERE
    reason IS NULL AND TRUE AND TRUE
), transactions AS (
  SELECT
    (
      TRY_CAST(file_number AS BIGINT) << 40
    ) + start_pos AS transaction_key,
    committed_at,
    thread_id,
    outcome,
    rolled_back_ranges
  FROM binloom_intermediate.int_transactions_resolved
  WHERE
    TRUE
), keyed AS (
  SELECT
    row_events.*,
    transactions.committed_at,
    transactions.thread_id,
    COALESCE(
      (
        LIST_FILTER(
          transactions.rolled_back_ranges,
          LAMBDA one : {'start_pos': row_events.start_pos, 'payload_ordinal': row_events.payload_ordinal} >= {'start_pos': one.start_pos, 'start_ordinal': one.start_ordinal}
          AND {'start_pos': row_events.start_pos, 'payload_ordinal': row_events.payload_ordinal} < {'end_pos': one.end_pos, 'end_ordinal': one.end_ordinal}
        )
      )[1].outcome,
      transactions.outcome
    ) AS outcome,
    CASE
      WHEN ARRAY_LENGTH(row_events.primary_key_ordinals) = 1
      THEN REPLACE(
        REPLACE(
          CASE
            WHEN row_events.event_type = 'INSERT'
            THEN row_events.after_values
            ELSE row_events.before_values
          END[(
            row_events.primary_key_ordinals[1]
          ) + 1],
          '\',
          '\\'
        ),
        '|',
        '\|'
      )
      WHEN ARRAY_LENGTH(row_events.primary_key_ordinals) > 1
      AND (
        LEN(
          LIST_FILTER(
            row_events.primary_key_ordinals,
            LAMBDA place : NOT (
              NOT CASE
                WHEN row_events.event_type = 'INSERT'
                THEN row_events.after_values
                ELSE row_events.before_values
              END[(
                place
              ) + 1] IS NULL
            )
          )
        ) = 0
      )
      THEN ARRAY_TO_STRING(
        LIST_TRANSFORM(
          row_events.primary_key_ordinals,
          LAMBDA place : REPLACE(
            REPLACE(
              CASE
                WHEN row_events.event_type = 'INSERT'
                THEN row_events.after_values
                ELSE row_events.before_values
              END[(
                place
              ) + 1],
              '\',
              '\\'
            ),
            '|',
            '\|'
          )
        ),
        '|'
      )
    END AS pk_values
  FROM row_events
  LEFT JOIN transactions
    ON row_events.transaction_key = transactions.transaction_key
), final AS (
  SELECT
    CONCAT_WS('/', source_id, epoch, binlog_file, start_pos, payload_ordinal, row_ordinal) AS change_id,
    file_sequence,
    start_pos,
    end_pos,
    payload_ordinal,
    row_ordinal,
    transaction_pos,
    gtid,
    event_timestamp,
    committed_at,
    outcome,
    event_type,
    schema_name,
    table_name,
    pk_values,
    SHA256(pk_values) AS pk_hash,
    CASE
      WHEN event_type = 'UPDATE'
      THEN CASE
        WHEN after_columns IS NULL AND ARRAY_LENGTH(primary_key_ordinals) = 1
        THEN CASE
          WHEN before_values[(
            primary_key_ordinals[1]
          ) + 1] <> after_values[(
            primary_key_ordinals[1]
          ) + 1]
          THEN CASE
            WHEN ARRAY_LENGTH(primary_key_ordinals) = 1
            THEN REPLACE(REPLACE(after_values[(
              primary_key_ordinals[1]
            ) + 1], '\', '\\'), '|', '\|')
            WHEN ARRAY_LENGTH(primary_key_ordinals) > 1
            AND (
              LEN(
                LIST_FILTER(
                  primary_key_ordinals,
                  LAMBDA place : NOT (
                    NOT after_values[(
                      place
                    ) + 1] IS NULL
                  )
                )
              ) = 0
            )
            THEN ARRAY_TO_STRING(
              LIST_TRANSFORM(
                primary_key_ordinals,
                LAMBDA place : REPLACE(REPLACE(after_values[(
                  place
                ) + 1], '\', '\\'), '|', '\|')
              ),
              '|'
            )
          END
        END
        WHEN (
          LEN(
            LIST_FILTER(
              primary_key_ordinals,
              LAMBDA place : (
                after_columns IS NULL OR ARRAY_CONTAINS(after_columns, place)
              )
              AND before_values[(
                place
              ) + 1] <> after_values[(
                place
              ) + 1]
            )
          ) > 0
        )
        THEN ARRAY_TO_STRING(
          LIST_TRANSFORM(
            primary_key_ordinals,
            LAMBDA place : REPLACE(
              REPLACE(
                CASE
                  WHEN after_columns IS NULL OR ARRAY_CONTAINS(after_columns, place)
                  THEN after_values[(
                    place
                  ) + 1]
                  ELSE before_values[(
                    place
                  ) + 1]
                END,
                '\',
                '\\'
              ),
              '|',
              '\|'
            )
          ),
          '|'
        )
      END
    END AS pk_values_after,
    CASE
      WHEN event_type = 'UPDATE'
      THEN CASE
        WHEN before_columns IS NULL AND after_columns IS NULL
        THEN LIST_FILTER(
          column_names,
          LAMBDA name, place : NOT before_values[(
            (
              place - 1
            )
          ) + 1] IS NOT DISTINCT FROM after_values[(
            (
              place - 1
            )
          ) + 1]
        )
        ELSE LIST_FILTER(
          column_names,
          LAMBDA name, place : COALESCE(ARRAY_CONTAINS(undecoded_columns, (
            place - 1
          )), FALSE)
          OR (
            (
              after_columns IS NULL OR ARRAY_CONTAINS(after_columns, (
                place - 1
              ))
            )
            AND (
              NOT (
                before_columns IS NULL OR ARRAY_CONTAINS(before_columns, (
                  place - 1
                ))
              )
              OR NOT before_values[(
                (
                  place - 1
                )
              ) + 1] IS NOT DISTINCT FROM after_values[(
                (
                  place - 1
                )
              ) + 1]
            )
          )
        )
      END
    END AS changed_columns,
    CASE
      WHEN event_type <> 'INSERT'
      THEN CASE
        WHEN before_columns IS NULL
        THEN MAP(column_names, before_values)
        ELSE MAP(
          LIST_TRANSFORM(before_columns, LAMBDA place : column_names[(
            place
          ) + 1]),
          LIST_TRANSFORM(before_columns, LAMBDA place : before_values[(
            place
          ) + 1])
        )
      END
    END AS row_before,
    CASE
      WHEN event_type <> 'DELETE'
      THEN CASE
        WHEN after_columns IS NULL
        THEN MAP(column_names, after_values)
        ELSE MAP(
          LIST_TRANSFORM(after_columns, LAMBDA place : column_names[(
            place
          ) + 1]),
          LIST_TRANSFORM(after_columns, LAMBDA place : after_values[(
            place
          ) + 1])
        )
      END
    END AS row_after,
    LIST_TRANSFORM(undecoded_columns, LAMBDA place : column_names[(
      place
    ) + 1]) AS undecoded_columns,
    LIST_TRANSFORM(
      json_changes,
      LAMBDA change : {'column_name': column_names[(
        change.column_ordinal
      ) + 1], 'operation': change.operation, 'path': change.path, 'value': change.value}
    ) AS json_changes,
    table_version_id,
    binding_confidence,
    thread_id,
    server_id,
    event_hour,
    source_id,
    epoch,
    binlog_file,
    file_part
  FROM keyed
)
SELECT
  *
FROM final;

create view binloom_staging.stg_binlog__statements as
WITH landed AS (
  SELECT
    landed.*
  FROM binlog_raw.statements AS landed
  ANTI JOIN binloom_staging.stg_binlog__segments AS unfinished
    ON landed.source_id = unfinished.source_id
    AND landed.epoch = unfinished.epoch
    AND landed.binlog_file = unfinished.binlog_file
    AND landed.segment_start = unfinished.segment_start
    AND unfinished.status IN ('in_progress', 'failed', 'replaced', 'expired')
), final AS (
  SELECT
    source_id,
    epoch,
    binlog_file,
    segment_start,
    start_pos,
    end_pos,
    payload_ordinal,
    transaction_pos,
    kind,
    default_schema,
    thread_id,
    error_code,
    sql_text,
    sql_mode,
    time_zone,
    character_set_client,
    character_set_connection,
    collation_server,
    event_timestamp,
    dml_targets,
    digest,
    digest_text,
    tags
  FROM landed
)
SELECT
  *
FROM final;

create view binloom.transactions as
WITH transactions AS (
  SELECT
    *
  FROM binloom_intermediate.int_transactions_resolved
  WHERE
    TRUE
), statements AS (
  SELECT
    source_id,
    epoch,
    binlog_file,
    transaction_pos,
    digest,
    tags,
    {'start_pos': start_pos, 'payload_ordinal': payload_ordinal} AS place
  FROM binloom_staging.stg_binlog__statements
  WHERE
    NOT digest IS NULL AND TRUE
), distinct_statements AS (
  SELECT
    source_id,
    epoch,
    binlog_file,
    transaction_pos,
    digest,
    MIN(place) AS first_place,
    MIN(place) FILTER(WHERE
      NOT tags IS NULL) AS first_tagged_place,
    ARG_MIN(tags, place) FILTER(WHERE
      NOT tags IS NULL) AS first_tags
  FROM statements
  GROUP BY
    source_id,
    epoch,
    binlog_file,
    transaction_pos,
    digest
), digests AS (
  SELECT
    source_id,
    epoch,
    binlog_file,
    transaction_pos,
    LIST_TRANSFORM(
      LIST_SORT(
        ARRAY_AGG({'first_place': first_place, 'digest': digest}) FILTER(WHERE {'first_place': first_place, 'digest': digest} IS NOT NULL)
      ),
      LAMBDA used : used.digest
    ) AS digests,
    ARG_MIN(first_tags, first_tagged_place) FILTER(WHERE
      NOT first_tags IS NULL) AS tags
  FROM distinct_statements
  GROUP BY
    source_id,
    epoch,
    binlog_file,
    transaction_pos
), final AS (
  SELECT
    CONCAT_WS(
      '/',
      transactions.source_id,
      transactions.epoch,
      transactions.binlog_file,
      transactions.start_pos
    ) AS transaction_id,
    transactions.segment_start,
    transactions.file_sequence,
    transactions.start_pos,
    transactions.end_pos,
    transactions.gtid,
    transactions.xid,
    transactions.xa_xid,
    transactions.xa_end_transaction_id,
    transactions.thread_id,
    transactions.server_id,
    transactions.outcome,
    transactions.events,
    transactions.row_events,
    transactions.inserts,
    transactions.updates,
    transactions.deletes,
    transactions.rolled_back_ranges,
    transactions.is_ddl,
    transactions.started_at,
    transactions.committed_at,
    transactions.original_committed_at,
    transactions.landed_at,
    digests.digests,
    digests.tags,
    transactions.source_id,
    transactions.epoch,
    transactions.binlog_file
  FROM transactions
  LEFT JOIN digests
    ON transactions.source_id = digests.source_id
    AND transactions.epoch = digests.epoch
    AND transactions.binlog_file = digests.binlog_file
    AND transactions.start_pos = digests.transaction_pos
)
SELECT
  *
FROM final;

create view binloom_staging.stg_binlog__table_versions as
WITH landed AS (
  SELECT
    *
  FROM binlog_raw.table_versions
), schema_histories AS (
  SELECT
    *
  FROM binloom_staging.stg_binlog__schema_histories
), final AS (
  SELECT
    landed.table_version_id,
    landed.source_id,
    landed.evidence,
    landed.evidence_id,
    landed.schema_name,
    landed.table_name,
    landed.definition_id,
    landed.column_count,
    landed."columns",
    landed.column_names,
    landed.primary_key_ordinals,
    landed.valid_from_epoch,
    landed.valid_from_binlog_file,
    landed.valid_from_file_sequence,
    landed.valid_from_pos,
    landed.valid_to_epoch,
    landed.valid_to_binlog_file,
    landed.valid_to_file_sequence,
    landed.valid_to_pos
  FROM landed
  INNER JOIN schema_histories
    ON landed.source_id = schema_histories.source_id
    AND landed.history_id = schema_histories.history_id
)
SELECT
  *
FROM final;

create view binloom.table_versions as
WITH table_versions AS (
  SELECT
    *
  FROM binloom_staging.stg_binlog__table_versions
), final AS (
  SELECT
    table_version_id,
    source_id,
    schema_name,
    table_name,
    evidence,
    MIN(evidence_id) AS evidence_id,
    ANY_VALUE("columns") AS "columns",
    ANY_VALUE(column_names) AS column_names,
    LIST_TRANSFORM(
      ANY_VALUE(primary_key_ordinals),
      LAMBDA place : ANY_VALUE(column_names)[(
        place
      ) + 1]
    ) AS primary_key_columns,
    ANY_VALUE(column_count) AS column_count,
    CASE WHEN MIN(valid_from_epoch) = -1 THEN NULL ELSE MIN(valid_from_epoch) END AS valid_from_epoch,
    MIN(valid_from_binlog_file) AS valid_from_binlog_file,
    CASE WHEN MIN(valid_from_pos) = -1 THEN NULL ELSE MIN(valid_from_pos) END AS valid_from_pos,
    CASE WHEN MIN(valid_to_epoch) = 2147483647 THEN NULL ELSE MIN(valid_to_epoch) END AS valid_to_epoch,
    MIN(valid_to_binlog_file) AS valid_to_binlog_file,
    CASE WHEN MIN(valid_to_epoch) = 2147483647 THEN NULL ELSE MIN(valid_to_pos) END AS valid_to_pos
  FROM table_versions
  GROUP BY
    table_version_id,
    source_id,
    schema_name,
    table_name,
    evidence
)
SELECT
  *
FROM final;

create view binloom_intermediate.int_row_event_counts as
WITH completed_segments AS (
  SELECT
    *
  FROM binloom_intermediate.int_completed_segments
), counted AS (
  SELECT
    *,
    UNNEST(row_event_counts) AS counts
  FROM completed_segments
), final AS (
  SELECT
    source_id,
    epoch,
    binlog_file,
    segment_start,
    counts.table_map_id,
    counts.schema_name,
    counts.table_name,
    counts.event_hour,
    counts.inserts + counts.updates + counts.deletes AS row_events,
    counts.inserts,
    counts.updates,
    counts.deletes,
    counts.first_pos,
    counts.last_pos,
    counts.first_event_at,
    counts.last_event_at,
    landed_at
  FROM counted
)
SELECT
  *
FROM final;

create view binloom_staging.stg_binlog__unsupported_events as
WITH landed AS (
  SELECT
    landed.*
  FROM binlog_raw.unsupported_events AS landed
  ANTI JOIN binloom_staging.stg_binlog__segments AS unfinished
    ON landed.source_id = unfinished.source_id
    AND landed.epoch = unfinished.epoch
    AND landed.binlog_file = unfinished.binlog_file
    AND landed.segment_start = unfinished.segment_start
    AND unfinished.status IN ('in_progress', 'failed', 'replaced', 'expired')
), final AS (
  SELECT
    source_id,
    epoch,
    binlog_file,
    segment_start,
    start_pos,
    end_pos,
    event_type,
    schema_name,
    table_name,
    reason,
    detail
  FROM landed
)
SELECT
  *
FROM final;

create view binloom.quarantined_row_events as
WITH row_events AS (
  SELECT
    *
  FROM binloom_intermediate.int_row_events_bound
), row_event_counts AS (
  SELECT
    *
  FROM binloom_intermediate.int_row_event_counts
), bindings AS (
  SELECT
    *
  FROM binloom_intermediate.int_table_map_bindings
), unsupported_events AS (
  SELECT
    *
  FROM binloom_staging.stg_binlog__unsupported_events
), completed_segments AS (
  SELECT
    *
  FROM binloom_intermediate.int_completed_segments
), event_types AS (
  SELECT
    *
  FROM binloom_seeds.event_types
), suspect_segments AS (
  SELECT DISTINCT
    row_event_counts.source_id,
    row_event_counts.epoch,
    row_event_counts.binlog_file,
    row_event_counts.segment_start
  FROM row_event_counts
  INNER JOIN completed_segments
    ON row_event_counts.source_id = completed_segments.source_id
    AND row_event_counts.epoch = completed_segments.epoch
    AND row_event_counts.binlog_file = completed_segments.binlog_file
    AND row_event_counts.segment_start = completed_segments.segment_start
  LEFT JOIN bindings
    ON row_event_counts.source_id = bindings.source_id
    AND row_event_counts.table_map_id = bindings.table_map_id
    AND (
      row_event_counts.epoch > bindings.valid_from_epoch
      OR (
        row_event_counts.epoch = bindings.valid_from_epoch
        AND (
          completed_segments.file_sequence > bindings.valid_from_file_sequence
          OR (
            completed_segments.file_sequence = bindings.valid_from_file_sequence
            AND row_event_counts.last_pos >= bindings.valid_from_pos
          )
        )
      )
    )
    AND (
      row_event_counts.epoch < bindings.valid_to_epoch
      OR (
        row_event_counts.epoch = bindings.valid_to_epoch
        AND (
          completed_segments.file_sequence < bindings.valid_to_file_sequence
          OR (
            completed_segments.file_sequence = bindings.valid_to_file_sequence
            AND row_event_counts.first_pos < bindings.valid_to_pos
          )
        )
      )
    )
  WHERE
    bindings.table_map_id IS NULL
    OR NOT bindings.reason IS NULL
    OR NOT bindings.unknown_hints IS NULL
), unbound AS (
  SELECT
    row_events.source_id,
    row_events.epoch,
    row_events.binlog_file,
    row_events.segment_start,
    row_events.file_sequence,
    row_events.start_pos,
    row_events.end_pos,
    row_events.payload_ordinal,
    row_events.row_ordinal,
    row_events.transaction_pos,
    row_events.gtid,
    row_events.event_type,
    row_events.event_timestamp,
    row_events.event_hour,
    row_events.schema_name,
    row_events.table_name,
    row_events.table_map_id,
    row_events.column_count,
    row_events.table_version_id,
    row_events.reason,
    row_events.detail,
    row_events.before_values,
    row_events.after_values,
    row_events.before_columns,
    row_events.after_columns,
    row_events.undecoded_columns,
    row_events.json_changes
  FROM row_events
  INNER JOIN suspect_segments
    ON row_events.source_id = suspect_segments.source_id
    AND row_events.epoch = suspect_segments.epoch
    AND row_events.binlog_file = suspect_segments.binlog_file
    AND row_events.segment_start = suspect_segments.segment_start
  WHERE
    NOT row_events.reason IS NULL
), undecoded AS (
  SELECT
    unsupported_events.source_id,
    unsupported_events.epoch,
    unsupported_events.binlog_file,
    unsupported_events.segment_start,
    completed_segments.file_sequence,
    unsupported_events.start_pos,
    unsupported_events.end_pos,
    TRY_CAST(NULL AS INT) AS payload_ordinal,
    TRY_CAST(NULL AS INT) AS row_ordinal,
    TRY_CAST(NULL AS BIGINT) AS transaction_pos,
    TRY_CAST(NULL AS TEXT) AS gtid,
    unsupported_events.event_type,
    TRY_CAST(NULL AS TIMESTAMPTZ) AS event_timestamp,
    TRY_CAST(NULL AS TEXT) AS event_hour,
    unsupported_events.schema_name,
    unsupported_events.table_name,
    TRY_CAST(NULL AS TEXT) AS table_map_id,
    TRY_CAST(NULL AS INT) AS column_count,
    TRY_CAST(NULL AS TEXT) AS table_version_id,
    'decode_error' AS reason,
    CONCAT_WS(': ', unsupported_events.reason, unsupported_events.detail) AS detail,
    TRY_CAST(NULL AS TEXT[]) AS before_values,
    TRY_CAST(NULL AS TEXT[]) AS after_values,
    TRY_CAST(NULL AS INT[]) AS before_columns,
    TRY_CAST(NULL AS INT[]) AS after_columns,
    TRY_CAST(NULL AS INT[]) AS undecoded_columns,
    TRY_CAST(NULL AS STRUCT(column_ordinal INT, operation TEXT, path TEXT, value TEXT)[]) AS json_changes
  FROM unsupported_events
  INNER JOIN completed_segments
    ON unsupported_events.source_id = completed_segments.source_id
    AND unsupported_events.epoch = completed_segments.epoch
    AND unsupported_events.binlog_file = completed_segments.binlog_file
    AND unsupported_events.segment_start = completed_segments.segment_start
  LEFT JOIN event_types
    ON unsupported_events.event_type = event_types.event_type
  WHERE
    COALESCE(event_types.changes_rows, 'yes') = 'yes'
    OR NOT unsupported_events.table_name IS NULL
), unioned AS (
  SELECT
    *
  FROM unbound
  UNION ALL
  SELECT
    *
  FROM undecoded
), final AS (
  SELECT
    CONCAT_WS('/', source_id, epoch, binlog_file, start_pos, payload_ordinal, row_ordinal) AS row_event_id,
    *
  FROM unioned
)
SELECT
  *
FROM final;

create view binloom_staging.stg_binlog__ddl_actions as
WITH landed AS (
  SELECT
    landed.*
  FROM binlog_raw.ddl_actions AS landed
  ANTI JOIN binloom_staging.stg_binlog__segments AS unfinished
    ON landed.source_id = unfinished.source_id
    AND landed.epoch = unfinished.epoch
    AND landed.binlog_file = unfinished.binlog_file
    AND landed.segment_start = unfinished.segment_start
    AND unfinished.status IN ('in_progress', 'failed', 'replaced', 'expired')
), final AS (
  SELECT
    source_id,
    epoch,
    binlog_file,
    segment_start,
    start_pos,
    end_pos,
    payload_ordinal,
    action_ordinal,
    action,
    statement_type,
    schema_name,
    table_name,
    other_schema_name,
    other_table_name,
    column_name,
    "columns",
    place,
    after_column,
    key_columns,
    character_set,
    "collation",
    is_conditional,
    detail
  FROM landed
)
SELECT
  *
FROM final;

create view binloom.schema_changes as
WITH statements AS (
  SELECT
    *
  FROM binloom_staging.stg_binlog__statements
), ddl_actions AS (
  SELECT
    *
  FROM binloom_staging.stg_binlog__ddl_actions
), transactions AS (
  SELECT
    *
  FROM binloom_staging.stg_binlog__transactions
), completed_segments AS (
  SELECT
    *
  FROM binloom_intermediate.int_completed_segments
), described AS (
  SELECT
    *,
    CASE WHEN NOT table_name IS NULL THEN CONCAT_WS('.', schema_name, table_name) END AS changed_table,
    CASE
      WHEN action IN ('rename_table', 'exchange_partition')
      THEN CONCAT_WS('.', other_schema_name, other_table_name)
    END AS other_changed_table,
    CONCAT_WS(
      ' ',
      action,
      column_name,
      NULLIF(
        ARRAY_TO_STRING(
          LIST_TRANSFORM("columns", LAMBDA defined : CONCAT_WS(' ', defined.name, defined.column_type)),
          ', '
        ),
        ''
      ),
      place,
      after_column,
      NULLIF(CONCAT_WS('.', other_schema_name, other_table_name), ''),
      CASE
        WHEN CARDINALITY(key_columns) > 0
        THEN '(' || ARRAY_TO_STRING(key_columns, ', ') || ')'
        ELSE NULL
      END,
      character_set,
      detail
    ) AS description
  FROM ddl_actions
), changes AS (
  SELECT
    source_id,
    epoch,
    binlog_file,
    segment_start,
    start_pos,
    payload_ordinal,
    ARG_MIN(statement_type, action_ordinal) AS statement_type,
    ARG_MIN(schema_name, action_ordinal) AS schema_name,
    ARG_MIN(table_name, action_ordinal) AS table_name,
    LIST_SORT(
      ARRAY_AGG(
        {'action_ordinal': action_ordinal, 'description': description, 'tables': LIST_FILTER([changed_table, other_changed_table], LAMBDA _u : NOT _u IS NULL)}
      ) FILTER(WHERE {'action_ordinal': action_ordinal, 'description': description, 'tables': LIST_FILTER([changed_table, other_changed_table], LAMBDA _u : NOT _u IS NULL)} IS NOT NULL)
    ) AS steps,
    BOOL_AND(CAST(action <> 'not_understood' AS BOOLEAN)) AS is_understood,
    BOOL_OR(
      CAST(action IN (
        'drop_table',
        'drop_database',
        'truncate_table',
        'drop_partition',
        'truncate_partition'
      )
      AND statement_type <> 'DROP SEQUENCE' AS BOOLEAN)
    ) AS destroys_rows
  FROM described
  GROUP BY
    source_id,
    epoch,
    binlog_file,
    segment_start,
    start_pos,
    payload_ordinal
), final AS (
  SELECT
    CONCAT_WS(
      '/',
      statements.source_id,
      statements.epoch,
      statements.binlog_file,
      statements.start_pos,
      statements.payload_ordinal
    ) AS schema_change_id,
    statements.source_id,
    statements.epoch,
    statements.binlog_file,
    completed_segments.file_sequence,
    statements.start_pos,
    statements.end_pos,
    statements.payload_ordinal,
    statements.transaction_pos,
    transactions.gtid,
    statements.thread_id,
    changes.statement_type,
    changes.schema_name,
    changes.table_name,
    LIST_TRANSFORM(changes.steps, LAMBDA step : step.description) AS actions,
    LIST_FILTER(
      FLATTEN(LIST_TRANSFORM(changes.steps, LAMBDA step : step.tables)),
      LAMBDA one, place : LIST_POSITION(FLATTEN(LIST_TRANSFORM(changes.steps, LAMBDA step : step.tables)), one) = place
    ) AS tables,
    statements.default_schema,
    statements.error_code,
    statements.sql_text,
    changes.is_understood,
    changes.destroys_rows,
    statements.event_timestamp
  FROM changes
  INNER JOIN statements
    ON changes.source_id = statements.source_id
    AND changes.epoch = statements.epoch
    AND changes.binlog_file = statements.binlog_file
    AND changes.segment_start = statements.segment_start
    AND changes.start_pos = statements.start_pos
    AND changes.payload_ordinal = statements.payload_ordinal
  INNER JOIN completed_segments
    ON statements.source_id = completed_segments.source_id
    AND statements.epoch = completed_segments.epoch
    AND statements.binlog_file = completed_segments.binlog_file
    AND statements.segment_start = completed_segments.segment_start
  LEFT JOIN transactions
    ON statements.source_id = transactions.source_id
    AND statements.epoch = transactions.epoch
    AND statements.binlog_file = transactions.binlog_file
    AND statements.transaction_pos = transactions.start_pos
)
SELECT
  *
FROM final;

create view binloom_staging.stg_binlog__foreign_keys as
WITH landed AS (
  SELECT
    *
  FROM binlog_raw.foreign_keys
), final AS (
  SELECT DISTINCT
    snapshot_id,
    constraint_name,
    schema_name,
    table_name,
    column_name,
    ordinal_position,
    referenced_schema_name,
    referenced_table_name,
    referenced_column_name,
    update_rule,
    delete_rule
  FROM landed
)
SELECT
  *
FROM final;

create view binloom_staging.stg_binlog__schema_snapshots as
WITH landed AS (
  SELECT
    *
  FROM binlog_raw.schema_snapshots
), ranked AS (
  SELECT
    *,
    ROW_NUMBER() OVER (PARTITION BY source_id, snapshot_id ORDER BY taken_at DESC) AS recency
  FROM landed
), final AS (
  SELECT
    snapshot_id,
    source_id,
    epoch,
    binlog_file,
    binlog_pos,
    gtid_executed,
    origin,
    logs_cascades,
    taken_at
  FROM ranked
  WHERE
    recency = 1
)
SELECT
  *
FROM final;

create view binloom.foreign_keys as
WITH foreign_keys AS (
  SELECT
    *
  FROM binloom_staging.stg_binlog__foreign_keys
), schema_snapshots AS (
  SELECT
    *
  FROM binloom_staging.stg_binlog__schema_snapshots
  WHERE
    origin <> 'binlog'
), latest_snapshots AS (
  SELECT
    source_id,
    ARG_MAX(snapshot_id, {'taken_at': taken_at, 'snapshot_id': snapshot_id}) AS snapshot_id,
    MAX(taken_at) AS taken_at
  FROM schema_snapshots
  GROUP BY
    source_id
), final AS (
  SELECT
    latest_snapshots.source_id,
    latest_snapshots.snapshot_id,
    foreign_keys.constraint_name,
    foreign_keys.schema_name,
    foreign_keys.table_name,
    foreign_keys.column_name,
    foreign_keys.referenced_schema_name,
    foreign_keys.referenced_table_name,
    foreign_keys.referenced_column_name,
    foreign_keys.update_rule,
    foreign_keys.delete_rule,
    foreign_keys.ordinal_position,
    NOT UPPER(foreign_keys.update_rule) IN ('NO ACTION', 'RESTRICT')
    OR NOT UPPER(foreign_keys.delete_rule) IN ('NO ACTION', 'RESTRICT') AS is_cascading,
    latest_snapshots.taken_at
  FROM latest_snapshots
  INNER JOIN foreign_keys
    ON latest_snapshots.snapshot_id = foreign_keys.snapshot_id
)
SELECT
  *
FROM final;

create view binloom_quality.lost_events as
WITH unsupported_events AS (
  SELECT
    *
  FROM binloom_staging.stg_binlog__unsupported_events
), final AS (
  SELECT
    source_id,
    epoch,
    binlog_file,
    start_pos,
    end_pos,
    detail
  FROM unsupported_events
  WHERE
    reason = 'incident'
)
SELECT
  *
FROM final;

create view binloom_staging.stg_binlog__stream_gaps as
WITH landed AS (
  SELECT
    *
  FROM binlog_raw.stream_gaps
), ranked AS (
  SELECT
    *,
    ROW_NUMBER() OVER (PARTITION BY gap_id ORDER BY recorded_at DESC, status = 'found' ASC NULLS FIRST) AS recency,
    MIN(recorded_at) OVER (PARTITION BY gap_id) AS found_at
  FROM landed
), final AS (
  SELECT
    gap_id,
    source_id,
    from_epoch,
    from_file,
    from_pos,
    from_gtids,
    to_epoch,
    to_file,
    to_pos,
    to_gtids,
    missing_gtids,
    reason,
    status,
    detail,
    server_uuid,
    found_at,
    recorded_at
  FROM ranked
  WHERE
    recency = 1
)
SELECT
  *
FROM final;

create view binloom_intermediate.int_gtid_ranges as
WITH transactions AS (
  SELECT
    *
  FROM binloom_staging.stg_binlog__transactions
  WHERE
    TRUE
), completed_segments AS (
  SELECT
    *
  FROM binloom_intermediate.int_completed_segments
), numbered AS (
  SELECT
    source_id,
    epoch,
    binlog_file,
    segment_start,
    REGEXP_EXTRACT(gtid, '^(.*[:-])[0-9]+$', 1) AS gtid_stem,
    TRY_CAST(SPLIT_PART(gtid, CASE WHEN gtid LIKE '%:%' THEN ':' ELSE '-' END, -1) AS BIGINT) AS number
  FROM transactions
), ranked AS (
  SELECT
    *,
    number - DENSE_RANK() OVER (
      PARTITION BY source_id, epoch, binlog_file, segment_start, gtid_stem
      ORDER BY number NULLS FIRST
    ) AS island
  FROM numbered
), ranges AS (
  SELECT
    source_id,
    epoch,
    binlog_file,
    segment_start,
    gtid_stem,
    MIN(number) AS first_number,
    MAX(number) AS last_number,
    COUNT(*) AS transactions
  FROM ranked
  GROUP BY
    source_id,
    epoch,
    binlog_file,
    segment_start,
    gtid_stem,
    island
), final AS (
  SELECT
    ranges.segment_start,
    ranges.gtid_stem,
    ranges.first_number,
    ranges.last_number,
    ranges.transactions,
    completed_segments.landed_at,
    ranges.source_id,
    ranges.epoch,
    ranges.binlog_file
  FROM ranges
  INNER JOIN completed_segments
    ON ranges.source_id = completed_segments.source_id
    AND ranges.epoch = completed_segments.epoch
    AND ranges.binlog_file = completed_segments.binlog_file
    AND ranges.segment_start = completed_segments.segment_start
)
SELECT
  *
FROM final;

create view binloom_staging.stg_binlog__sources as
WITH landed AS (
  SELECT
    *
  FROM binlog_raw.sources
), final AS (
  SELECT
    source_id,
    epoch,
    server_uuid,
    server_id,
    host,
    port,
    flavor,
    server_version,
    COALESCE(
      MAX(CASE WHEN change = 'epoch_opened' THEN observed_at END) OVER (PARTITION BY source_id, epoch),
      MIN(observed_at) OVER (PARTITION BY source_id, epoch)
    ) AS opened_at,
    observed_at,
    change,
    start_file,
    start_pos,
    gtids_before
  FROM landed
)
SELECT
  *
FROM final;

create view binloom_quality.stream_gaps as
WITH __dbt__cte__int_consecutive_files AS (
  WITH binlog_files AS (
    SELECT
      *
    FROM binloom_staging.stg_binlog__binlog_files
  ), segments AS (
    SELECT
      *
    FROM binloom_staging.stg_binlog__segments
    WHERE
      is_current
  ), gtid_ranges AS (
    SELECT
      *
    FROM binloom_intermediate.int_gtid_ranges
  ), stream_gaps AS (
    SELECT
      *
    FROM binloom_staging.stg_binlog__stream_gaps
    WHERE
      status <> 'filled'
  ), servers AS (
    SELECT
      source_id,
      epoch,
      ARG_MAX(server_id, observed_at) AS server_id
    FROM binloom_staging.stg_binlog__sources
    GROUP BY
      source_id,
      epoch
  ), looked_at AS (
    SELECT
      source_id,
      epoch,
      binlog_file,
      BOOL_AND(
        CAST(status = 'completed' OR (
          status = 'skipped' AND NOT gtids IS NULL
        ) AS BOOLEAN)
      ) AS is_known,
      FLATTEN(
        ARRAY_AGG(
          CASE
            WHEN status = 'skipped'
            THEN FLATTEN(
              LIST_TRANSFORM(
                LIST_FILTER(
                  STR_SPLIT_REGEX(REGEXP_REPLACE(gtids, '\s*,\s*', ',', 'g'), ','),
                  LAMBDA item : item <> ''
                ),
                LAMBDA item : CASE
                  WHEN item LIKE '%:%'
                  THEN LIST_REDUCE(
                    ARRAY_SLICE(
                      STR_SPLIT_REGEX(item, ':'),
                      2,
                      (
                        2 + CAST(ARRAY_LENGTH(STR_SPLIT_REGEX(item, ':')) AS BIGINT)
                      ) - 1
                    ),
                    LAMBDA known, part : CASE
                      WHEN REGEXP_MATCHES(part, '^[0-9]')
                      THEN {'tag': known.tag, 'intervals': known.intervals || [
                        {'stem': SPLIT_PART(item, ':', 1) || ':' || known.tag, 'low': TRY_CAST(SPLIT_PART(part, '-', 1) AS BIGINT), 'high': TRY_CAST(SPLIT_PART(part, '-', -1) AS BIGINT)}
                      ]}
                      ELSE {'tag': part || ':', 'intervals': known.intervals}
                    END,
                    {'tag': '', 'intervals': TRY_CAST([] AS STRUCT(stem TEXT, low BIGINT, high BIGINT)[])}
                  ).intervals
                  ELSE [
                    {'stem': REGEXP_EXTRACT(item, '^([0-9]+-[0-9]+-)', 1), 'low': CASE
                      WHEN item LIKE '% to %'
                      THEN TRY_CAST(REGEXP_EXTRACT(item, '^[0-9]+-[0-9]+-([0-9]+)', 1) AS BIGINT)
                      ELSE TRY_CAST(1 AS BIGINT)
                    END, 'high': TRY_CAST(SPLIT_PART(item, '-', -1) AS BIGINT)}
                  ]
                END
              )
            )
          END
        ) FILTER(WHERE CASE
          WHEN status = 'skipped'
          THEN FLATTEN(
            LIST_TRANSFORM(
              LIST_FILTER(
                STR_SPLIT_REGEX(REGEXP_REPLACE(gtids, '\s*,\s*', ',', 'g'), ','),
                LAMBDA item : item <> ''
              ),
              LAMBDA item : CASE
                WHEN item LIKE '%:%'
                THEN LIST_REDUCE(
                  ARRAY_SLICE(
                    STR_SPLIT_REGEX(item, ':'),
                    2,
                    (
                      2 + CAST(ARRAY_LENGTH(STR_SPLIT_REGEX(item, ':')) AS BIGINT)
                    ) - 1
                  ),
                  LAMBDA known, part : CASE
                    WHEN REGEXP_MATCHES(part, '^[0-9]')
                    THEN {'tag': known.tag, 'intervals': known.intervals || [
                      {'stem': SPLIT_PART(item, ':', 1) || ':' || known.tag, 'low': TRY_CAST(SPLIT_PART(part, '-', 1) AS BIGINT), 'high': TRY_CAST(SPLIT_PART(part, '-', -1) AS BIGINT)}
                    ]}
                    ELSE {'tag': part || ':', 'intervals': known.intervals}
                  END,
                  {'tag': '', 'intervals': TRY_CAST([] AS STRUCT(stem TEXT, low BIGINT, high BIGINT)[])}
                ).intervals
                ELSE [
                  {'stem': REGEXP_EXTRACT(item, '^([0-9]+-[0-9]+-)', 1), 'low': CASE
                    WHEN item LIKE '% to %'
                    THEN TRY_CAST(REGEXP_EXTRACT(item, '^[0-9]+-[0-9]+-([0-9]+)', 1) AS BIGINT)
                    ELSE TRY_CAST(1 AS BIGINT)
                  END, 'high': TRY_CAST(SPLIT_PART(item, '-', -1) AS BIGINT)}
                ]
              END
            )
          )
        END IS NOT NULL)
      ) AS skipped
    FROM segments
    GROUP BY
      source_id,
      epoch,
      binlog_file
  ), landed_stems AS (
    SELECT
      source_id,
      epoch,
      binlog_file,
      gtid_stem AS stem,
      CASE WHEN gtid_stem LIKE '%-' THEN TRY_CAST(1 AS BIGINT) ELSE first_number END AS low,
      MAX(last_number) AS high
    FROM gtid_ranges
    GROUP BY
      source_id,
      epoch,
      binlog_file,
      gtid_stem,
      CASE WHEN gtid_stem LIKE '%-' THEN TRY_CAST(1 AS BIGINT) ELSE first_number END
  ), landed AS (
    SELECT
      source_id,
      epoch,
      binlog_file,
      ARRAY_AGG(CASE WHEN NOT high IS NULL THEN {'stem': stem, 'low': low, 'high': high} END) FILTER(WHERE CASE WHEN NOT high IS NULL THEN {'stem': stem, 'low': low, 'high': high} END IS NOT NULL) AS landed,
      BOOL_OR(CAST(high IS NULL AS BOOLEAN)) AS has_anonymous
    FROM landed_stems
    GROUP BY
      source_id,
      epoch,
      binlog_file
  ), followed AS (
    SELECT
      *,
      LEAD(
        {'epoch': epoch, 'binlog_file': binlog_file, 'file_sequence': file_sequence, 'previous_gtids': previous_gtids}
      ) OVER (PARTITION BY source_id ORDER BY epoch NULLS FIRST, file_sequence NULLS FIRST) AS following
    FROM binlog_files
    WHERE
      NOT file_sequence IS NULL
  ), final AS (
    SELECT
      followed.source_id,
      followed.epoch,
      followed.binlog_file,
      followed.file_size,
      followed.is_relay_log,
      followed.previous_gtids,
      followed.next_binlog_file,
      followed.following,
      followed.following.epoch = followed.epoch AS is_same_epoch,
      COALESCE(servers.server_id = following_servers.server_id, FALSE) AS is_same_server,
      followed.following.file_sequence = followed.file_sequence + 1
      OR followed.next_binlog_file IS NOT DISTINCT FROM followed.following.binlog_file AS is_contiguous,
      NOT followed.next_binlog_file IS NULL
      OR COALESCE(followed.event_counts['STOP'], 0) > 0 AS has_end,
      COALESCE(looked_at.is_known, FALSE) AS is_known,
      COALESCE(landed.has_anonymous, FALSE) AS has_anonymous,
      COALESCE(looked_at.is_known, FALSE)
      AND NOT followed.is_relay_log
      AND NOT followed.previous_gtids IS NULL
      AND NOT followed.following.previous_gtids IS NULL AS is_compared,
      looked_at.skipped,
      landed.landed
    FROM followed
    LEFT JOIN looked_at
      ON followed.source_id = looked_at.source_id
      AND followed.epoch = looked_at.epoch
      AND followed.binlog_file = looked_at.binlog_file
    LEFT JOIN landed
      ON followed.source_id = landed.source_id
      AND followed.epoch = landed.epoch
      AND followed.binlog_file = landed.binlog_file
    LEFT JOIN servers
      ON followed.source_id = servers.source_id AND followed.epoch = servers.epoch
    LEFT JOIN servers AS following_servers
      ON followed.source_id = following_servers.source_id
      AND followed.following.epoch = following_servers.epoch
    ANTI JOIN stream_gaps
      ON followed.source_id = stream_gaps.source_id
      AND followed.epoch IS NOT DISTINCT FROM stream_gaps.from_epoch
      AND followed.binlog_file IS NOT DISTINCT FROM stream_gaps.from_file
    WHERE
      NOT followed.following IS NULL
  )
  SELECT
    *
  FROM final
), stream_gaps AS (
  SELECT
    *
  FROM binloom_staging.stg_binlog__stream_gaps
), consecutive_files AS (
  SELECT
    *
  FROM __dbt__cte__int_consecutive_files
), unproven AS (
  SELECT
    CONCAT_WS('/', source_id, epoch, binlog_file) AS gap_id,
    source_id,
    epoch AS from_epoch,
    binlog_file AS from_file,
    file_size AS from_pos,
    TRY_CAST(NULL AS TEXT) AS from_gtids,
    following.epoch AS to_epoch,
    following.binlog_file AS to_file,
    TRY_CAST(4 AS BIGINT) AS to_pos,
    following.previous_gtids AS to_gtids,
    TRY_CAST(NULL AS TEXT) AS missing_gtids,
    CASE WHEN is_same_server THEN 'reset' ELSE 'diverged' END AS reason,
    'unproven' AS status,
    'the log begins anew in files that were landed, not followed' AS detail,
    TRY_CAST(NULL AS TEXT) AS server_uuid,
    TRY_CAST(NULL AS TIMESTAMPTZ) AS found_at,
    TRY_CAST(NULL AS TIMESTAMPTZ) AS recorded_at
  FROM consecutive_files
  WHERE
    NOT is_same_epoch
    AND NOT is_relay_log
    AND is_known
    AND CASE
      WHEN is_same_server
      THEN following.file_sequence = 1 AND NOT has_end
      ELSE following.file_sequence > 1
      AND NOT (
        is_compared AND following.previous_gtids <> ''
      )
    END
), gaps AS (
  SELECT
    *
  FROM stream_gaps
  UNION ALL
  SELECT
    *
  FROM unproven
), final AS (
  SELECT
    gap_id,
    source_id,
    from_epoch,
    from_file,
    from_pos,
    from_gtids,
    to_epoch,
    to_file,
    to_pos,
    to_gtids,
    missing_gtids,
    reason,
    status,
    CASE
      WHEN status = 'found'
      THEN 'following has stopped; what lies between has not been read'
      WHEN status = 'accepted'
      THEN 'what lies between is missing, and was given up with --accept-gap'
      WHEN status = 'unproven'
      THEN 'nothing is known to be missing, but the log does not show that nothing is'
    END AS meaning,
    detail,
    server_uuid,
    found_at,
    recorded_at
  FROM gaps
  WHERE
    status <> 'filled'
)
SELECT
  *
FROM final;

create view binloom_quality.failed_segments as
WITH segments AS (
  SELECT
    *
  FROM binloom_staging.stg_binlog__segments
), final AS (
  SELECT
    source_id,
    epoch,
    binlog_file,
    segment_start,
    segment_end,
    status,
    error,
    run_id,
    recorded_at
  FROM segments
  WHERE
    is_current AND status IN ('in_progress', 'failed')
)
SELECT
  *
FROM final;

create view binloom_quality.uncovered_bytes as
WITH segments AS (
  SELECT
    *
  FROM binloom_staging.stg_binlog__segments
), binlog_files AS (
  SELECT
    *
  FROM binloom_staging.stg_binlog__binlog_files
), unsupported_events AS (
  SELECT
    *
  FROM binloom_staging.stg_binlog__unsupported_events
  WHERE
    reason = 'bad_checksum'
), covered AS (
  SELECT
    source_id,
    epoch,
    binlog_file,
    GREATEST(segment_start, 4) AS segment_start,
    segment_end,
    COALESCE(
      MAX(segment_end) OVER (
        PARTITION BY source_id, epoch, binlog_file
        ORDER BY segment_start NULLS FIRST, segment_end NULLS FIRST
        rows BETWEEN UNBOUNDED preceding AND 1 preceding
      ),
      4
    ) AS covered_until
  FROM segments
  WHERE
    is_current
), between_segments AS (
  SELECT
    source_id,
    epoch,
    binlog_file,
    LEAST(covered_until, segment_start) AS range_start,
    GREATEST(covered_until, segment_start) AS range_end,
    CASE WHEN segment_start > covered_until THEN 'gap' ELSE 'overlap' END AS defect
  FROM covered
  WHERE
    segment_start <> covered_until
), ends AS (
  SELECT
    source_id,
    epoch,
    binlog_file,
    MAX(segment_end) AS covered_until
  FROM segments
  WHERE
    is_current
  GROUP BY
    source_id,
    epoch,
    binlog_file
), after_segments AS (
  SELECT
    binlog_files.source_id,
    binlog_files.epoch,
    binlog_files.binlog_file,
    COALESCE(ends.covered_until, 4) AS range_start,
    binlog_files.file_size AS range_end,
    'gap' AS defect
  FROM binlog_files
  LEFT JOIN ends
    ON binlog_files.source_id = ends.source_id
    AND binlog_files.epoch = ends.epoch
    AND binlog_files.binlog_file = ends.binlog_file
  WHERE
    COALESCE(ends.covered_until, 4) < binlog_files.file_size
    AND NOT binlog_files.is_in_use
), passed_over AS (
  SELECT DISTINCT
    source_id,
    epoch,
    binlog_file,
    start_pos AS range_start,
    end_pos AS range_end,
    'bad_checksum' AS defect
  FROM unsupported_events
), explained AS (
  SELECT
    source_id,
    epoch,
    binlog_file
  FROM segments
  WHERE
    is_current AND status = 'failed'
  UNION ALL
  SELECT
    source_id,
    epoch,
    binlog_file
  FROM passed_over
), broken_since AS (
  SELECT
    binlog_files.source_id,
    binlog_files.epoch,
    binlog_files.binlog_file,
    4 AS range_start,
    binlog_files.file_size AS range_end,
    'bad_checksum' AS defect
  FROM binlog_files
  ANTI JOIN explained
    ON binlog_files.source_id = explained.source_id
    AND binlog_files.epoch = explained.epoch
    AND binlog_files.binlog_file = explained.binlog_file
  WHERE
    binlog_files.checksum_failures > 0
), misplaced AS (
  SELECT
    source_id,
    epoch,
    binlog_file,
    first_misplaced_pos AS range_start,
    first_misplaced_pos AS range_end,
    'misplaced' AS defect
  FROM binlog_files
  WHERE
    NOT first_misplaced_pos IS NULL
), final AS (
  SELECT
    *
  FROM between_segments
  UNION ALL
  SELECT
    *
  FROM after_segments
  UNION ALL
  SELECT
    *
  FROM passed_over
  UNION ALL
  SELECT
    *
  FROM broken_since
  UNION ALL
  SELECT
    *
  FROM misplaced
)
SELECT
  *
FROM final;

create view binloom_quality.file_breaks as
WITH __dbt__cte__int_consecutive_files AS (
  WITH binlog_files AS (
    SELECT
      *
    FROM binloom_staging.stg_binlog__binlog_files
  ), segments AS (
    SELECT
      *
    FROM binloom_staging.stg_binlog__segments
    WHERE
      is_current
  ), gtid_ranges AS (
    SELECT
      *
    FROM binloom_intermediate.int_gtid_ranges
  ), stream_gaps AS (
    SELECT
      *
    FROM binloom_staging.stg_binlog__stream_gaps
    WHERE
      status <> 'filled'
  ), servers AS (
    SELECT
      source_id,
      epoch,
      ARG_MAX(server_id, observed_at) AS server_id
    FROM binloom_staging.stg_binlog__sources
    GROUP BY
      source_id,
      epoch
  ), looked_at AS (
    SELECT
      source_id,
      epoch,
      binlog_file,
      BOOL_AND(
        CAST(status = 'completed' OR (
          status = 'skipped' AND NOT gtids IS NULL
        ) AS BOOLEAN)
      ) AS is_known,
      FLATTEN(
        ARRAY_AGG(
          CASE
            WHEN status = 'skipped'
            THEN FLATTEN(
              LIST_TRANSFORM(
                LIST_FILTER(
                  STR_SPLIT_REGEX(REGEXP_REPLACE(gtids, '\s*,\s*', ',', 'g'), ','),
                  LAMBDA item : item <> ''
                ),
                LAMBDA item : CASE
                  WHEN item LIKE '%:%'
                  THEN LIST_REDUCE(
                    ARRAY_SLICE(
                      STR_SPLIT_REGEX(item, ':'),
                      2,
                      (
                        2 + CAST(ARRAY_LENGTH(STR_SPLIT_REGEX(item, ':')) AS BIGINT)
                      ) - 1
                    ),
                    LAMBDA known, part : CASE
                      WHEN REGEXP_MATCHES(part, '^[0-9]')
                      THEN {'tag': known.tag, 'intervals': known.intervals || [
                        {'stem': SPLIT_PART(item, ':', 1) || ':' || known.tag, 'low': TRY_CAST(SPLIT_PART(part, '-', 1) AS BIGINT), 'high': TRY_CAST(SPLIT_PART(part, '-', -1) AS BIGINT)}
                      ]}
                      ELSE {'tag': part || ':', 'intervals': known.intervals}
                    END,
                    {'tag': '', 'intervals': TRY_CAST([] AS STRUCT(stem TEXT, low BIGINT, high BIGINT)[])}
                  ).intervals
                  ELSE [
                    {'stem': REGEXP_EXTRACT(item, '^([0-9]+-[0-9]+-)', 1), 'low': CASE
                      WHEN item LIKE '% to %'
                      THEN TRY_CAST(REGEXP_EXTRACT(item, '^[0-9]+-[0-9]+-([0-9]+)', 1) AS BIGINT)
                      ELSE TRY_CAST(1 AS BIGINT)
                    END, 'high': TRY_CAST(SPLIT_PART(item, '-', -1) AS BIGINT)}
                  ]
                END
              )
            )
          END
        ) FILTER(WHERE CASE
          WHEN status = 'skipped'
          THEN FLATTEN(
            LIST_TRANSFORM(
              LIST_FILTER(
                STR_SPLIT_REGEX(REGEXP_REPLACE(gtids, '\s*,\s*', ',', 'g'), ','),
                LAMBDA item : item <> ''
              ),
              LAMBDA item : CASE
                WHEN item LIKE '%:%'
                THEN LIST_REDUCE(
                  ARRAY_SLICE(
                    STR_SPLIT_REGEX(item, ':'),
                    2,
                    (
                      2 + CAST(ARRAY_LENGTH(STR_SPLIT_REGEX(item, ':')) AS BIGINT)
                    ) - 1
                  ),
                  LAMBDA known, part : CASE
                    WHEN REGEXP_MATCHES(part, '^[0-9]')
                    THEN {'tag': known.tag, 'intervals': known.intervals || [
                      {'stem': SPLIT_PART(item, ':', 1) || ':' || known.tag, 'low': TRY_CAST(SPLIT_PART(part, '-', 1) AS BIGINT), 'high': TRY_CAST(SPLIT_PART(part, '-', -1) AS BIGINT)}
                    ]}
                    ELSE {'tag': part || ':', 'intervals': known.intervals}
                  END,
                  {'tag': '', 'intervals': TRY_CAST([] AS STRUCT(stem TEXT, low BIGINT, high BIGINT)[])}
                ).intervals
                ELSE [
                  {'stem': REGEXP_EXTRACT(item, '^([0-9]+-[0-9]+-)', 1), 'low': CASE
                    WHEN item LIKE '% to %'
                    THEN TRY_CAST(REGEXP_EXTRACT(item, '^[0-9]+-[0-9]+-([0-9]+)', 1) AS BIGINT)
                    ELSE TRY_CAST(1 AS BIGINT)
                  END, 'high': TRY_CAST(SPLIT_PART(item, '-', -1) AS BIGINT)}
                ]
              END
            )
          )
        END IS NOT NULL)
      ) AS skipped
    FROM segments
    GROUP BY
      source_id,
      epoch,
      binlog_file
  ), landed_stems AS (
    SELECT
      source_id,
      epoch,
      binlog_file,
      gtid_stem AS stem,
      CASE WHEN gtid_stem LIKE '%-' THEN TRY_CAST(1 AS BIGINT) ELSE first_number END AS low,
      MAX(last_number) AS high
    FROM gtid_ranges
    GROUP BY
      source_id,
      epoch,
      binlog_file,
      gtid_stem,
      CASE WHEN gtid_stem LIKE '%-' THEN TRY_CAST(1 AS BIGINT) ELSE first_number END
  ), landed AS (
    SELECT
      source_id,
      epoch,
      binlog_file,
      ARRAY_AGG(CASE WHEN NOT high IS NULL THEN {'stem': stem, 'low': low, 'high': high} END) FILTER(WHERE CASE WHEN NOT high IS NULL THEN {'stem': stem, 'low': low, 'high': high} END IS NOT NULL) AS landed,
      BOOL_OR(CAST(high IS NULL AS BOOLEAN)) AS has_anonymous
    FROM landed_stems
    GROUP BY
      source_id,
      epoch,
      binlog_file
  ), followed AS (
    SELECT
      *,
      LEAD(
        {'epoch': epoch, 'binlog_file': binlog_file, 'file_sequence': file_sequence, 'previous_gtids': previous_gtids}
      ) OVER (PARTITION BY source_id ORDER BY epoch NULLS FIRST, file_sequence NULLS FIRST) AS following
    FROM binlog_files
    WHERE
      NOT file_sequence IS NULL
  ), final AS (
    SELECT
      followed.source_id,
      followed.epoch,
      followed.binlog_file,
      followed.file_size,
      followed.is_relay_log,
      followed.previous_gtids,
      followed.next_binlog_file,
      followed.following,
      followed.following.epoch = followed.epoch AS is_same_epoch,
      COALESCE(servers.server_id = following_servers.server_id, FALSE) AS is_same_server,
      followed.following.file_sequence = followed.file_sequence + 1
      OR followed.next_binlog_file IS NOT DISTINCT FROM followed.following.binlog_file AS is_contiguous,
      NOT followed.next_binlog_file IS NULL
      OR COALESCE(followed.event_counts['STOP'], 0) > 0 AS has_end,
      COALESCE(looked_at.is_known, FALSE) AS is_known,
      COALESCE(landed.has_anonymous, FALSE) AS has_anonymous,
      COALESCE(looked_at.is_known, FALSE)
      AND NOT followed.is_relay_log
      AND NOT followed.previous_gtids IS NULL
      AND NOT followed.following.previous_gtids IS NULL AS is_compared,
      looked_at.skipped,
      landed.landed
    FROM followed
    LEFT JOIN looked_at
      ON followed.source_id = looked_at.source_id
      AND followed.epoch = looked_at.epoch
      AND followed.binlog_file = looked_at.binlog_file
    LEFT JOIN landed
      ON followed.source_id = landed.source_id
      AND followed.epoch = landed.epoch
      AND followed.binlog_file = landed.binlog_file
    LEFT JOIN servers
      ON followed.source_id = servers.source_id AND followed.epoch = servers.epoch
    LEFT JOIN servers AS following_servers
      ON followed.source_id = following_servers.source_id
      AND followed.following.epoch = following_servers.epoch
    ANTI JOIN stream_gaps
      ON followed.source_id = stream_gaps.source_id
      AND followed.epoch IS NOT DISTINCT FROM stream_gaps.from_epoch
      AND followed.binlog_file IS NOT DISTINCT FROM stream_gaps.from_file
    WHERE
      NOT followed.following IS NULL
  )
  SELECT
    *
  FROM final
), __dbt__cte__int_gtid_differences AS (
  WITH consecutive_files AS (
    SELECT
      *
    FROM __dbt__cte__int_consecutive_files
  ), sides AS (
    SELECT
      source_id,
      epoch,
      binlog_file,
      is_same_epoch,
      UNNEST(
        LIST_TRANSFORM(
          FLATTEN(
            LIST_TRANSFORM(
              LIST_FILTER(
                STR_SPLIT_REGEX(REGEXP_REPLACE(previous_gtids, '\s*,\s*', ',', 'g'), ','),
                LAMBDA item : item <> ''
              ),
              LAMBDA item : CASE
                WHEN item LIKE '%:%'
                THEN LIST_REDUCE(
                  ARRAY_SLICE(
                    STR_SPLIT_REGEX(item, ':'),
                    2,
                    (
                      2 + CAST(ARRAY_LENGTH(STR_SPLIT_REGEX(item, ':')) AS BIGINT)
                    ) - 1
                  ),
                  LAMBDA known, part : CASE
                    WHEN REGEXP_MATCHES(part, '^[0-9]')
                    THEN {'tag': known.tag, 'intervals': known.intervals || [
                      {'stem': SPLIT_PART(item, ':', 1) || ':' || known.tag, 'low': TRY_CAST(SPLIT_PART(part, '-', 1) AS BIGINT), 'high': TRY_CAST(SPLIT_PART(part, '-', -1) AS BIGINT)}
                    ]}
                    ELSE {'tag': part || ':', 'intervals': known.intervals}
                  END,
                  {'tag': '', 'intervals': TRY_CAST([] AS STRUCT(stem TEXT, low BIGINT, high BIGINT)[])}
                ).intervals
                ELSE [
                  {'stem': REGEXP_EXTRACT(item, '^([0-9]+-[0-9]+-)', 1), 'low': CASE
                    WHEN item LIKE '% to %'
                    THEN TRY_CAST(REGEXP_EXTRACT(item, '^[0-9]+-[0-9]+-([0-9]+)', 1) AS BIGINT)
                    ELSE TRY_CAST(1 AS BIGINT)
                  END, 'high': TRY_CAST(SPLIT_PART(item, '-', -1) AS BIGINT)}
                ]
              END
            )
          ) || COALESCE(skipped, []) || COALESCE(landed, []),
          LAMBDA one : {'stem': one.stem, 'low': one.low, 'high': one.high, 'landed': 1, 'said': 0}
        ) || LIST_TRANSFORM(
          FLATTEN(
            LIST_TRANSFORM(
              LIST_FILTER(
                STR_SPLIT_REGEX(REGEXP_REPLACE(following.previous_gtids, '\s*,\s*', ',', 'g'), ','),
                LAMBDA item : item <> ''
              ),
              LAMBDA item : CASE
                WHEN item LIKE '%:%'
                THEN LIST_REDUCE(
                  ARRAY_SLICE(
                    STR_SPLIT_REGEX(item, ':'),
                    2,
                    (
                      2 + CAST(ARRAY_LENGTH(STR_SPLIT_REGEX(item, ':')) AS BIGINT)
                    ) - 1
                  ),
                  LAMBDA known, part : CASE
                    WHEN REGEXP_MATCHES(part, '^[0-9]')
                    THEN {'tag': known.tag, 'intervals': known.intervals || [
                      {'stem': SPLIT_PART(item, ':', 1) || ':' || known.tag, 'low': TRY_CAST(SPLIT_PART(part, '-', 1) AS BIGINT), 'high': TRY_CAST(SPLIT_PART(part, '-', -1) AS BIGINT)}
                    ]}
                    ELSE {'tag': part || ':', 'intervals': known.intervals}
                  END,
                  {'tag': '', 'intervals': TRY_CAST([] AS STRUCT(stem TEXT, low BIGINT, high BIGINT)[])}
                ).intervals
                ELSE [
                  {'stem': REGEXP_EXTRACT(item, '^([0-9]+-[0-9]+-)', 1), 'low': CASE
                    WHEN item LIKE '% to %'
                    THEN TRY_CAST(REGEXP_EXTRACT(item, '^[0-9]+-[0-9]+-([0-9]+)', 1) AS BIGINT)
                    ELSE TRY_CAST(1 AS BIGINT)
                  END, 'high': TRY_CAST(SPLIT_PART(item, '-', -1) AS BIGINT)}
                ]
              END
            )
          ),
          LAMBDA one : {'stem': one.stem, 'low': one.low, 'high': one.high, 'landed': 0, 'said': 1}
        )
      ) AS side
    FROM consecutive_files
    WHERE
      is_compared
  ), steps AS (
    SELECT
      source_id,
      epoch,
      binlog_file,
      is_same_epoch,
      UNNEST(
        [
          {'stem': side.stem, 'number': side.low, 'landed': side.landed, 'said': side.said},
          {'stem': side.stem, 'number': side.high + 1, 'landed': -side.landed, 'said': -side.said}
        ]
      ) AS step
    FROM sides
  ), summed_steps AS (
    SELECT
      source_id,
      epoch,
      binlog_file,
      is_same_epoch,
      step.stem,
      step.number,
      SUM(step.landed) AS landed_step,
      SUM(step.said) AS said_step,
      BOOL_OR(CAST(step.landed <> 0 AS BOOLEAN)) AS is_of_landed,
      BOOL_OR(CAST(step.said <> 0 AS BOOLEAN)) AS is_of_said
    FROM steps
    GROUP BY
      source_id,
      epoch,
      binlog_file,
      is_same_epoch,
      step.stem,
      step.number
  ), stretches AS (
    SELECT
      source_id,
      epoch,
      binlog_file,
      is_same_epoch,
      stem,
      number AS low,
      LEAD(number) OVER numbers - 1 AS high,
      SUM(landed_step) OVER numbers > 0 AS is_landed,
      SUM(said_step) OVER numbers > 0 AS is_said,
      BOOL_OR(CAST(is_of_landed AS BOOLEAN)) OVER series AS has_landed,
      BOOL_OR(CAST(is_of_said AS BOOLEAN)) OVER domain AS has_said
    FROM summed_steps
    WINDOW numbers AS (PARTITION BY source_id, epoch, binlog_file, stem ORDER BY number NULLS FIRST), series AS (PARTITION BY source_id, epoch, binlog_file, stem), domain AS (
      PARTITION BY source_id, epoch, binlog_file, CASE WHEN stem LIKE '%-' THEN SPLIT_PART(stem, '-', 1) ELSE stem END
    )
  ), final AS (
    SELECT
      source_id,
      epoch,
      binlog_file,
      ARRAY_TO_STRING(
        LIST_SORT(
          ARRAY_AGG(
            CASE
              WHEN is_said
              THEN stem || low || CASE WHEN high > low THEN '-' || high ELSE '' END
            END
          ) FILTER(WHERE CASE
            WHEN is_said
            THEN stem || low || CASE WHEN high > low THEN '-' || high ELSE '' END
          END IS NOT NULL)
        ),
        ','
      ) AS missing_gtids,
      ARRAY_TO_STRING(
        LIST_SORT(
          ARRAY_AGG(
            CASE
              WHEN is_landed
              THEN stem || low || CASE WHEN high > low THEN '-' || high ELSE '' END
            END
          ) FILTER(WHERE CASE
            WHEN is_landed
            THEN stem || low || CASE WHEN high > low THEN '-' || high ELSE '' END
          END IS NOT NULL)
        ),
        ','
      ) AS unexpected_gtids
    FROM stretches
    WHERE
      is_landed <> is_said
      AND CASE
        WHEN is_same_epoch
        THEN is_said OR stem LIKE '%:' OR has_said
        ELSE is_said AND has_landed
      END
    GROUP BY
      source_id,
      epoch,
      binlog_file
  )
  SELECT
    *
  FROM final
), consecutive_files AS (
  SELECT
    *
  FROM __dbt__cte__int_consecutive_files
), gtid_differences AS (
  SELECT
    *
  FROM __dbt__cte__int_gtid_differences
), judged AS (
  SELECT
    consecutive_files.source_id,
    consecutive_files.epoch,
    consecutive_files.binlog_file,
    consecutive_files.next_binlog_file,
    consecutive_files.following.epoch AS following_epoch,
    consecutive_files.following.binlog_file AS following_binlog_file,
    CASE
      WHEN NOT consecutive_files.is_same_epoch
      THEN CASE
        WHEN NOT gtid_differences.binlog_file IS NULL
        THEN 'other_gtids'
        WHEN consecutive_files.is_same_server
        AND consecutive_files.following.file_sequence > 1
        THEN 'missing_files'
      END
      WHEN NOT consecutive_files.is_contiguous
      THEN 'missing_files'
      WHEN consecutive_files.is_relay_log
      THEN NULL
      WHEN consecutive_files.next_binlog_file <> consecutive_files.following.binlog_file
      THEN 'other_next_file'
      WHEN NOT gtid_differences.binlog_file IS NULL
      THEN 'other_gtids'
      WHEN NOT consecutive_files.has_end
      AND consecutive_files.is_known
      AND (
        NOT consecutive_files.is_compared OR consecutive_files.has_anonymous
      )
      THEN 'no_end'
    END AS defect,
    NULLIF(gtid_differences.missing_gtids, '') AS missing_gtids,
    NULLIF(gtid_differences.unexpected_gtids, '') AS unexpected_gtids
  FROM consecutive_files
  LEFT JOIN gtid_differences
    ON consecutive_files.source_id = gtid_differences.source_id
    AND consecutive_files.epoch = gtid_differences.epoch
    AND consecutive_files.binlog_file = gtid_differences.binlog_file
), final AS (
  SELECT
    source_id,
    epoch,
    binlog_file,
    next_binlog_file,
    following_epoch,
    following_binlog_file,
    defect,
    missing_gtids,
    unexpected_gtids
  FROM judged
  WHERE
    NOT defect IS NULL
)
SELECT
  *
FROM final;

create view binloom_intermediate.int_statement_format_changes as
WITH statements AS (
  SELECT
    *
  FROM binloom_staging.stg_binlog__statements
  WHERE
    TRUE
), completed_segments AS (
  SELECT
    *
  FROM binloom_intermediate.int_completed_segments
  WHERE
    TRUE
), ddl_actions AS (
  SELECT
    *
  FROM binloom_staging.stg_binlog__ddl_actions
  WHERE
    TRUE
), transactions AS (
  SELECT
    *
  FROM binloom_staging.stg_binlog__transactions
  WHERE
    TRUE
), ddl AS (
  SELECT
    source_id,
    epoch,
    binlog_file,
    segment_start,
    start_pos,
    payload_ordinal
  FROM ddl_actions
  GROUP BY
    source_id,
    epoch,
    binlog_file,
    segment_start,
    start_pos,
    payload_ordinal
  HAVING
    NOT BOOL_OR(CAST(action = 'create_select' AS BOOLEAN))
), without_targets AS (
  SELECT
    statements.*
  FROM statements
  ANTI JOIN ddl
    ON statements.source_id = ddl.source_id
    AND statements.epoch = ddl.epoch
    AND statements.binlog_file = ddl.binlog_file
    AND statements.segment_start = ddl.segment_start
    AND statements.start_pos = ddl.start_pos
    AND statements.payload_ordinal = ddl.payload_ordinal
  WHERE
    statements.dml_targets IS NULL
    AND statements.kind IN ('QUERY', 'LOAD')
    AND REGEXP_MATCHES(statements.sql_text, '(?i)\b(insert|replace|update|delete|load|select)\b')
), without_ranges AS (
  SELECT
    statements.*
  FROM statements
  INNER JOIN transactions
    ON statements.source_id = transactions.source_id
    AND statements.epoch = transactions.epoch
    AND statements.binlog_file = transactions.binlog_file
    AND statements.segment_start = transactions.segment_start
    AND statements.transaction_pos = transactions.start_pos
  WHERE
    transactions.rolled_back_ranges IS NULL
    AND statements.kind = 'QUERY'
    AND REGEXP_MATCHES(statements.sql_text, '(?is)^\s*(/\*.*?\*/\s*)*rollback\s+(work\s+)?to\s')
), targets AS (
  SELECT
    *,
    UNNEST(dml_targets) AS target
  FROM statements
), changes AS (
  SELECT
    source_id,
    epoch,
    binlog_file,
    segment_start,
    start_pos,
    event_timestamp,
    target.verb,
    target.schema_name,
    target.table_name
  FROM targets
  UNION ALL
  SELECT
    source_id,
    epoch,
    binlog_file,
    segment_start,
    start_pos,
    event_timestamp,
    TRY_CAST(NULL AS TEXT) AS verb,
    TRY_CAST(NULL AS TEXT) AS schema_name,
    TRY_CAST(NULL AS TEXT) AS table_name
  FROM (
    SELECT
      *
    FROM without_targets
    UNION ALL
    SELECT
      *
    FROM without_ranges
  ) AS unrecorded
), counted AS (
  SELECT
    source_id,
    epoch,
    binlog_file,
    segment_start,
    schema_name,
    table_name,
    verb,
    COUNT(*) AS statements,
    MIN(start_pos) AS first_pos,
    MAX(start_pos) AS last_pos,
    MIN(event_timestamp) AS first_event_at,
    MAX(event_timestamp) AS last_event_at
  FROM changes
  GROUP BY
    source_id,
    epoch,
    binlog_file,
    segment_start,
    schema_name,
    table_name,
    verb
), final AS (
  SELECT
    completed_segments.segment_start,
    counted.schema_name,
    counted.table_name,
    counted.verb,
    COALESCE(counted.statements, 0) AS statements,
    counted.first_pos,
    counted.last_pos,
    counted.first_event_at,
    counted.last_event_at,
    completed_segments.landed_at,
    completed_segments.source_id,
    completed_segments.epoch,
    completed_segments.binlog_file
  FROM completed_segments
  LEFT JOIN counted
    ON completed_segments.source_id = counted.source_id
    AND completed_segments.epoch = counted.epoch
    AND completed_segments.binlog_file = counted.binlog_file
    AND completed_segments.segment_start = counted.segment_start
  WHERE
    completed_segments.transactions > 0
)
SELECT
  *
FROM final;

create view binloom_quality.statement_format_changes as
WITH statement_format_changes AS (
  SELECT
    *
  FROM binloom_intermediate.int_statement_format_changes
  WHERE
    statements > 0
), completed_segments AS (
  SELECT
    *
  FROM binloom_intermediate.int_completed_segments
), positioned AS (
  SELECT
    statement_format_changes.*,
    {'epoch': statement_format_changes.epoch, 'file_sequence': completed_segments.file_sequence, 'pos': statement_format_changes.first_pos, 'binlog_file': statement_format_changes.binlog_file} AS first_position,
    {'epoch': statement_format_changes.epoch, 'file_sequence': completed_segments.file_sequence, 'pos': statement_format_changes.last_pos, 'binlog_file': statement_format_changes.binlog_file} AS last_position
  FROM statement_format_changes
  INNER JOIN completed_segments
    ON statement_format_changes.source_id = completed_segments.source_id
    AND statement_format_changes.epoch = completed_segments.epoch
    AND statement_format_changes.binlog_file = completed_segments.binlog_file
    AND statement_format_changes.segment_start = completed_segments.segment_start
), final AS (
  SELECT
    source_id,
    schema_name,
    table_name,
    verb,
    SUM(statements) AS statements,
    MIN(first_position).epoch AS first_epoch,
    MIN(first_position).binlog_file AS first_binlog_file,
    MIN(first_position).pos AS first_pos,
    MAX(last_position).epoch AS last_epoch,
    MAX(last_position).binlog_file AS last_binlog_file,
    MAX(last_position).pos AS last_pos,
    MIN(first_event_at) AS first_event_at,
    MAX(last_event_at) AS last_event_at
  FROM positioned
  GROUP BY
    source_id,
    schema_name,
    table_name,
    verb
)
SELECT
  *
FROM final;

create view binloom_staging.stg_binlog__baselines as
WITH landed AS (
  SELECT
    *
  FROM binlog_raw.baselines
), final AS (
  SELECT
    baseline_id,
    source_id,
    schema_name,
    table_name,
    column_names,
    primary_key_ordinals,
    row_count,
    origin,
    snapshot_id,
    binlog_file,
    binlog_pos,
    gtid_executed,
    taken_at,
    recorded_at,
    masked_columns,
    COALESCE(is_complete, TRUE) AS is_complete,
    position_proof
  FROM landed
)
SELECT
  *
FROM final;

create view binloom.baselines as
WITH baselines AS (
  SELECT
    *
  FROM binloom_staging.stg_binlog__baselines
), schema_histories AS (
  SELECT
    *
  FROM binloom_staging.stg_binlog__schema_histories
), expired_segments AS (
  SELECT
    *
  FROM binloom_staging.stg_binlog__segments
  WHERE
    status = 'expired'
), ends_of_expired AS (
  SELECT
    source_id,
    MAX(
      {'epoch': epoch, 'file_sequence': COALESCE(TRY_CAST(REGEXP_EXTRACT(binlog_file, '([0-9]+)$', 1) AS BIGINT), 0)}
    ) AS place
  FROM expired_segments
  GROUP BY
    source_id
), table_versions AS (
  SELECT
    *
  FROM binloom_staging.stg_binlog__table_versions
  WHERE
    evidence <> 'table_map'
), placed AS (
  SELECT
    baselines.*,
    schema_histories.snapshot_epochs[baselines.snapshot_id] AS epoch,
    COALESCE(TRY_CAST(REGEXP_EXTRACT(baselines.binlog_file, '([0-9]+)$', 1) AS BIGINT), 0) AS file_sequence
  FROM baselines
  LEFT JOIN schema_histories
    ON baselines.source_id = schema_histories.source_id
), kept AS (
  SELECT
    placed.*
  FROM placed
  ANTI JOIN ends_of_expired
    ON placed.source_id = ends_of_expired.source_id
    AND {'epoch': placed.epoch, 'file_sequence': placed.file_sequence} <= ends_of_expired.place
), versions AS (
  SELECT
    placed.baseline_id,
    placed.schema_name,
    placed.table_name,
    ARG_MIN(
      table_versions.table_version_id,
      {'col1': table_versions.column_names <> placed.column_names, 'table_version_id': table_versions.table_version_id}
    ) AS table_version_id
  FROM kept AS placed
  INNER JOIN table_versions
    ON placed.source_id = table_versions.source_id
    AND placed.schema_name = table_versions.schema_name
    AND placed.table_name = table_versions.table_name
    AND (
      placed.epoch > table_versions.valid_from_epoch
      OR (
        placed.epoch = table_versions.valid_from_epoch
        AND (
          placed.file_sequence > table_versions.valid_from_file_sequence
          OR (
            placed.file_sequence = table_versions.valid_from_file_sequence
            AND placed.binlog_pos >= table_versions.valid_from_pos
          )
        )
      )
    )
    AND (
      placed.epoch < table_versions.valid_to_epoch
      OR (
        placed.epoch = table_versions.valid_to_epoch
        AND (
          placed.file_sequence < table_versions.valid_to_file_sequence
          OR (
            placed.file_sequence = table_versions.valid_to_file_sequence
            AND placed.binlog_pos < table_versions.valid_to_pos
          )
        )
      )
    )
  GROUP BY
    placed.baseline_id,
    placed.schema_name,
    placed.table_name
), final AS (
  SELECT
    placed.baseline_id,
    placed.source_id,
    placed.epoch,
    placed.binlog_file,
    placed.file_sequence,
    placed.binlog_pos,
    placed.gtid_executed,
    placed.origin,
    placed.schema_name,
    placed.table_name,
    placed.column_names,
    placed.primary_key_ordinals,
    placed.row_count,
    versions.table_version_id,
    placed.masked_columns,
    placed.is_complete,
    placed.position_proof,
    placed.taken_at
  FROM kept AS placed
  LEFT JOIN versions
    ON placed.baseline_id = versions.baseline_id
    AND placed.schema_name = versions.schema_name
    AND placed.table_name = versions.table_name
)
SELECT
  *
FROM final;

create view binloom_intermediate.int_row_change_parts as
WITH row_event_counts AS (
  SELECT
    *
  FROM binloom_intermediate.int_row_event_counts
), completed_segments AS (
  SELECT
    *
  FROM binloom_intermediate.int_completed_segments
), bindings AS (
  SELECT
    *
  FROM binloom_intermediate.int_table_map_bindings
), xa_transactions AS (
  SELECT
    *
  FROM binloom_intermediate.int_xa_transactions
), xa_outcomes_by_segment AS (
  SELECT
    source_id,
    epoch,
    binlog_file,
    segment_start,
    MD5(
      ARRAY_TO_STRING(
        LIST_SORT(
          ARRAY_AGG(
            CONCAT_WS(
              ' ',
              start_pos,
              outcome,
              REGEXP_REPLACE(STRFTIME(committed_at AT TIME ZONE 'UTC', '%Y-%m-%d %H:%M:%S.%f'), '\.?0+$', '')
            )
          ) FILTER(WHERE CONCAT_WS(
            ' ',
            start_pos,
            outcome,
            REGEXP_REPLACE(STRFTIME(committed_at AT TIME ZONE 'UTC', '%Y-%m-%d %H:%M:%S.%f'), '\.?0+$', '')
          ) IS NOT NULL)
        ),
        ','
      )
    ) AS xa_outcomes
  FROM xa_transactions
  GROUP BY
    source_id,
    epoch,
    binlog_file,
    segment_start
), ingredients AS (
  SELECT
    row_event_counts.event_hour,
    row_event_counts.source_id,
    row_event_counts.epoch,
    row_event_counts.binlog_file,
    row_event_counts.segment_start,
    TRY_CAST(row_event_counts.segment_start // 67108864 AS INT) AS file_part,
    row_event_counts.landed_at,
    row_event_counts.row_events,
    row_event_counts.table_map_id,
    xa_outcomes_by_segment.xa_outcomes,
    bindings.table_version_id,
    bindings.reason,
    bindings.confidence,
    bindings.unknown_hints,
    completed_segments.file_sequence,
    (
      row_event_counts.epoch > bindings.valid_from_epoch
      OR (
        row_event_counts.epoch = bindings.valid_from_epoch
        AND (
          completed_segments.file_sequence > bindings.valid_from_file_sequence
          OR (
            completed_segments.file_sequence = bindings.valid_from_file_sequence
            AND row_event_counts.first_pos >= bindings.valid_from_pos
          )
        )
      )
    ) AS holds_first,
    (
      row_event_counts.epoch < bindings.valid_to_epoch
      OR (
        row_event_counts.epoch = bindings.valid_to_epoch
        AND (
          completed_segments.file_sequence < bindings.valid_to_file_sequence
          OR (
            completed_segments.file_sequence = bindings.valid_to_file_sequence
            AND row_event_counts.last_pos < bindings.valid_to_pos
          )
        )
      )
    ) AS holds_last,
    bindings.valid_from_epoch,
    bindings.valid_from_file_sequence,
    bindings.valid_from_pos
  FROM row_event_counts
  INNER JOIN completed_segments
    ON row_event_counts.source_id = completed_segments.source_id
    AND row_event_counts.epoch = completed_segments.epoch
    AND row_event_counts.binlog_file = completed_segments.binlog_file
    AND row_event_counts.segment_start = completed_segments.segment_start
  LEFT JOIN xa_outcomes_by_segment
    ON row_event_counts.source_id = xa_outcomes_by_segment.source_id
    AND row_event_counts.epoch = xa_outcomes_by_segment.epoch
    AND row_event_counts.binlog_file = xa_outcomes_by_segment.binlog_file
    AND row_event_counts.segment_start = xa_outcomes_by_segment.segment_start
  LEFT JOIN bindings
    ON row_event_counts.source_id = bindings.source_id
    AND row_event_counts.table_map_id = bindings.table_map_id
    AND (
      row_event_counts.epoch > bindings.valid_from_epoch
      OR (
        row_event_counts.epoch = bindings.valid_from_epoch
        AND (
          completed_segments.file_sequence > bindings.valid_from_file_sequence
          OR (
            completed_segments.file_sequence = bindings.valid_from_file_sequence
            AND row_event_counts.last_pos >= bindings.valid_from_pos
          )
        )
      )
    )
    AND (
      row_event_counts.epoch < bindings.valid_to_epoch
      OR (
        row_event_counts.epoch = bindings.valid_to_epoch
        AND (
          completed_segments.file_sequence < bindings.valid_to_file_sequence
          OR (
            completed_segments.file_sequence = bindings.valid_to_file_sequence
            AND row_event_counts.first_pos < bindings.valid_to_pos
          )
        )
      )
    )
), final AS (
  SELECT
    event_hour,
    source_id,
    epoch,
    binlog_file,
    file_part,
    MD5(
      ARRAY_TO_STRING(
        LIST_SORT(
          ARRAY_AGG(
            '{' || CONCAT_WS(
              ',',
              '"layout":' || CAST(TO_JSON(1) AS TEXT),
              '"segment_start":' || CAST(TO_JSON(segment_start) AS TEXT),
              '"landed_at":' || STRFTIME(landed_at AT TIME ZONE 'UTC', '"%Y-%m-%dT%H:%M:%S.%gZ"'),
              '"row_events":' || CAST(TO_JSON(row_events) AS TEXT),
              '"xa_outcomes":' || CAST(TO_JSON(xa_outcomes) AS TEXT),
              '"table_map_id":' || CAST(TO_JSON(table_map_id) AS TEXT),
              '"table_version_id":' || CAST(TO_JSON(table_version_id) AS TEXT),
              '"reason":' || CAST(TO_JSON(reason) AS TEXT),
              '"confidence":' || CAST(TO_JSON(confidence) AS TEXT),
              '"valid_from_epoch":' || CAST(TO_JSON(CASE WHEN holds_first THEN NULL ELSE valid_from_epoch END) AS TEXT),
              '"valid_from_file_sequence":' || CAST(TO_JSON(CASE WHEN holds_first THEN NULL ELSE valid_from_file_sequence END) AS TEXT),
              '"valid_from_pos":' || CAST(TO_JSON(CASE WHEN holds_first THEN NULL ELSE valid_from_pos END) AS TEXT)
            ) || '}'
          ) FILTER(WHERE '{' || CONCAT_WS(
            ',',
            '"layout":' || CAST(TO_JSON(1) AS TEXT),
            '"segment_start":' || CAST(TO_JSON(segment_start) AS TEXT),
            '"landed_at":' || STRFTIME(landed_at AT TIME ZONE 'UTC', '"%Y-%m-%dT%H:%M:%S.%gZ"'),
            '"row_events":' || CAST(TO_JSON(row_events) AS TEXT),
            '"xa_outcomes":' || CAST(TO_JSON(xa_outcomes) AS TEXT),
            '"table_map_id":' || CAST(TO_JSON(table_map_id) AS TEXT),
            '"table_version_id":' || CAST(TO_JSON(table_version_id) AS TEXT),
            '"reason":' || CAST(TO_JSON(reason) AS TEXT),
            '"confidence":' || CAST(TO_JSON(confidence) AS TEXT),
            '"valid_from_epoch":' || CAST(TO_JSON(CASE WHEN holds_first THEN NULL ELSE valid_from_epoch END) AS TEXT),
            '"valid_from_file_sequence":' || CAST(TO_JSON(CASE WHEN holds_first THEN NULL ELSE valid_from_file_sequence END) AS TEXT),
            '"valid_from_pos":' || CAST(TO_JSON(CASE WHEN holds_first THEN NULL ELSE valid_from_pos END) AS TEXT)
          ) || '}' IS NOT NULL)
        ),
        ','
      )
    ) AS fingerprint,
    COALESCE(
      BOOL_OR(
        CAST(NOT table_version_id IS NULL
        AND reason IS NULL
        AND unknown_hints IS NULL
        AND (
          holds_first OR holds_last
        ) AS BOOLEAN)
      ),
      FALSE
    ) AS has_bound_rows
  FROM ingredients
  GROUP BY
    event_hour,
    source_id,
    epoch,
    binlog_file,
    file_part
)
SELECT
  *
FROM final;
