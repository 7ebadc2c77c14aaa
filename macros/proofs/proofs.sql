{% macro proofs() %}
    {#- The proofs by the models of marts/quality, each with the unit of the number that it checked. For models with
        more than one proof, `test` is the name of the test of this proof, and `where` selects its rows. -#}
    {%- set proofs = [
        {'name': 'uncovered_bytes', 'unit': 'bytes'},
        {
            'name': 'failed_segments',
            'unit': 'segments',
            'test': 'failed_segments_have_not_failed',
            'where': "status = 'failed'",
        },
        {
            'name': 'unfinished_segments',
            'model': 'failed_segments',
            'unit': 'segments',
            'test': 'failed_segments_are_finished',
            'where': "status = 'in_progress'",
        },
        {'name': 'file_breaks', 'unit': 'files'},
        {'name': 'gtid_holes', 'unit': 'gtids'},
        {
            'name': 'stream_gaps',
            'unit': 'sources',
            'test': 'stream_gaps_stop_no_following',
            'where': "status = 'found'",
        },
        {
            'name': 'accepted_stream_gaps',
            'model': 'stream_gaps',
            'unit': 'sources',
            'test': 'stream_gaps_were_none',
            'where': "status != 'found'",
        },
        {'name': 'open_transactions', 'unit': 'transactions'},
        {'name': 'transaction_count_mismatches', 'unit': 'transactions'},
        {'name': 'segment_count_mismatches', 'unit': 'segments'},
        {'name': 'row_events_unaccounted_for', 'unit': 'row_events'},
        {'name': 'duplicate_row_changes', 'unit': 'row_changes'},
        {'name': 'chain_breaks', 'unit': 'row_changes'},
        {'name': 'unlogged_cascades', 'unit': 'sources'},
        {'name': 'baseline_differences', 'unit': 'baseline_rows'},
        {'name': 'column_count_mismatches', 'unit': 'table_maps'},
        {'name': 'statements_not_understood', 'unit': 'transactions'},
        {'name': 'quarantined_tables', 'unit': 'row_events'},
        {'name': 'rows_decoded_without_hints', 'unit': 'row_events'},
        {'name': 'segments_to_land_again', 'unit': 'row_events'},
        {'name': 'undecoded_events', 'unit': 'events'},
        {'name': 'lost_events', 'unit': 'events'},
        {'name': 'statement_format_changes', 'unit': 'transactions'},
        {'name': 'late_sources', 'unit': 'sources'},
        {'name': 'empty_hours', 'unit': 'hours'},
    ] -%}
    {{ return(proofs) }}
{% endmacro %}
