{% macro format_properties() %}
    {%- set format = config.get('file_format', 'parquet') -%}
    {%- set options = config.get('options') or {} -%}
    {%- set properties = {} -%}
    {%- set compared = [] -%}
    {%- for quoted, value in options.items() if value == 'true' -%}
        {%- set option, column = (quoted.strip("'") ~ '#').split('#')[:2] -%}
        {%- if option == 'parquet.column.statistics.enabled' -%}
            {%- do compared.append(column) -%}
        {%- elif option == 'parquet.bloom.filter.enabled' and format == 'iceberg' -%}
            {%- do properties.update({'write.parquet.bloom-filter-enabled.column.' ~ column: 'true'}) -%}
        {%- endif -%}
    {%- endfor -%}
    {%- if options and format == 'iceberg' -%}
        {%- do properties.update({'write.parquet.compression-level': '1', 'write.metadata.metrics.default': 'none'}) -%}
        {%- for column in compared -%}
            {%- do properties.update({'write.metadata.metrics.column.' ~ column: 'truncate(16)'}) -%}
        {%- endfor -%}
    {%- elif options and format == 'delta' -%}
        {#- Delta takes no empty list of columns. -#}
        {%- do properties.update(
            {'delta.dataSkippingStatsColumns': compared | join(',')} if compared
            else {'delta.dataSkippingNumIndexedCols': '0'}
        ) -%}
    {%- endif -%}
    {{ return(properties) }}
{% endmacro %}
