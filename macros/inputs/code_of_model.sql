{% macro code_of_model() %}
    {{ return(local_md5(
        [
            compiled_code,
            tojson(model.config, sort_keys=true),
            model.get('contract', {}).get('checksum') | string,
            code_of_parents(model),
        ] | join(' ')
    )) }}
{% endmacro %}
