{{ config(materialized='view') }}

-- depends_on: {{ ref('row_changes') }}, {{ ref('schema_changes') }}

{{ row_versions() }}
