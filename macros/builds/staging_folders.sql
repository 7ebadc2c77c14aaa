{% macro staging_folders(tables) %}
    {#- Spark skips folders whose names begin with a dot or an underscore, unless a path names them. A path that matches
        nothing is an error, but each table has a _temporary by now. -#}
    {%- set staging = '.spark-staging-*' -%}
    {%- set parts = ['_temporary', staging, staging ~ '/_temporary/*/*', staging ~ '/_temporary/*/_temporary/*'] -%}
    {%- set folders = [] -%}
    {%- for place in tables | map(attribute='schema_folder') | unique -%}
        {%- set pattern = modules.re.sub('([\\[\\]{}*?\\\\])', '\\\\\\1', place) ~ '/*/{' ~ parts | join(',') ~ '}' -%}
        {%- do run_query(
            "create or replace temporary view left_by_a_dead_build using binaryFile options (path "
            ~ text_literal(pattern) ~ ", recursiveFileLookup 'true')"
        ) -%}
        {%- for row in run_query(
            "select distinct regexp_extract(path, '^.*?/[.]spark-staging-[^/]*', 0) from left_by_a_dead_build"
        ).rows if row[0] -%}
            {%- do folders.append(row[0]) -%}
        {%- endfor -%}
        {%- do run_query("drop view left_by_a_dead_build") -%}
    {%- endfor -%}
    {{ return(folders) }}
{% endmacro %}
