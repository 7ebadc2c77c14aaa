{% macro files_of_ended_xa() %}
    {%- set query -%}
        select distinct
            held.source_id,
            held.epoch,
            held.binlog_file
        from {{ this }} as held
        inner join {{ ref('int_xa_transactions') }} as xa_transactions
            on
                held.source_id = xa_transactions.source_id
                and held.epoch = xa_transactions.epoch
                and held.binlog_file = xa_transactions.binlog_file
                and held.start_pos = xa_transactions.start_pos
        where
            not held.xa_end_transaction_id <=> xa_transactions.xa_end_transaction_id
            or not held.outcome <=> xa_transactions.outcome
            or not held.committed_at <=> xa_transactions.committed_at
        order by held.source_id, held.epoch, held.binlog_file
    {%- endset -%}
    {%- set files = [] -%}
    {%- for row in run_query(query).rows -%}
        {%- do files.append({'source_id': row[0], 'epoch': row[1] | int, 'binlog_file': row[2]}) -%}
    {%- endfor -%}
    {{ return(files) }}
{% endmacro %}
