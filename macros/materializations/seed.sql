{% materialization seed, adapter='spark' %}
    {%- if recorded(model).get('checksum') == model.checksum.checksum and not should_full_refresh() -%}
        {%- do store_result('agate_table', response='UNCHANGED', agate_table=load_agate_table()) -%}
        {{ return(skipped()) }}
    {%- endif -%}
    {{ return(dbt.materialization_seed_default()) }}
{% endmaterialization %}
