{% macro assert_session_is_utc() %}
    {%- if execute and flags.WHICH in ['run', 'build'] -%}
        {%- set time_zone = run_query("select current_timezone()").rows[0][0] -%}
        {%- if time_zone not in ['UTC', 'Etc/UTC', 'GMT', 'Z'] -%}
            {%- do exceptions.raise_compiler_error(
                "the Spark session is in time zone " ~ time_zone ~ ", and hours would be those of there. Start the server with"
                ~ " --conf spark.sql.session.timeZone=UTC."
            ) -%}
        {%- endif -%}
    {%- endif -%}
{% endmacro %}
