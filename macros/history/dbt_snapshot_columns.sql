{% macro dbt_snapshot_columns() -%}
row_version_id as dbt_scd_id,
valid_from as dbt_updated_at,
valid_from as dbt_valid_from,
valid_to as dbt_valid_to
{%- endmacro %}
