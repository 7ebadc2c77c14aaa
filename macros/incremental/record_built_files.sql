{% macro record_built_files(fingerprint) -%}
insert overwrite table {{ built_files() }}
select source_id, epoch, binlog_file, {{ fingerprint }} from {{ ref('int_chain_files') }}
{%- endmacro %}
