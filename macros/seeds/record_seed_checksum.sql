{% macro record_seed_checksum() -%}
alter table {{ this }} set tblproperties ('binloom.checksum' = '{{ model.checksum.checksum if execute }}')
{%- endmacro %}
