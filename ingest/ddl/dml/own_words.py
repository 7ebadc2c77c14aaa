"""Words that servers never take for stored functions where `(` follows: their own functions, words of their grammar.

Source: servers of MySQL 9.7 and 5.6, MariaDB 11.8 and 10.11. These are the words in their help tables, keywords and
programs of which a call with none, one or two arguments does not fail because there is no such function. A test asks
the servers again.
"""

from functools import cache
from typing import Final

from ingest.versions import Flavor


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ALL: Final = _words(
    """
    _binary _latin1 _utf8mb4 abs accessible acos add adddate addtime aes_decrypt aes_encrypt all alter analyze and
    any as asc ascii asensitive asin atan atan2 avg backup before begin benchmark between bigint bin binary binlog
    bit bit_and bit_count bit_length bit_or bit_xor blob bool boolean both by byte cache call cascade case cast ceil
    ceiling change char char_length character character_length charset check checksum close coalesce code
    coercibility collate collation column comment commit compress compressed concat concat_ws condition
    connection_id constraint contains continue conv convert convert_tz cos cot count crc32 create cross curdate
    current_date current_time current_timestamp current_user cursor curtime database databases date date_add
    date_format date_sub datediff datetime day day_hour day_microsecond day_minute day_second dayname dayofmonth
    dayofweek dayofyear deallocate dec decimal declare default degrees delayed delete desc describe deterministic
    distinct distinctrow div do double drop dual each else elseif elt enclosed end enum escaped execute exists exit
    exp explain export_set extract extractvalue false fetch field find_in_set fixed float float4 float8 floor flush
    for force foreign format found_rows from from_base64 from_days from_unixtime fulltext function get get_format
    get_lock global grant greatest group group_concat handler having help hex high_priority host hour
    hour_microsecond hour_minute hour_second if ifnull ignore in index inet6_aton inet6_ntoa inet_aton inet_ntoa
    infile inner inout insensitive insert install instr int int1 int2 int3 int4 int8 integer interval into is
    is_free_lock is_ipv4 is_ipv4_compat is_ipv4_mapped is_ipv6 is_used_lock isnull iterate join key keys kill
    language last_day last_insert_id lcase leading least leave left length like limit linear lines ln load load_file
    local localtime localtimestamp locate lock log log10 log2 long longblob longtext loop low_priority lower lpad
    ltrim make_set makedate maketime master_pos_wait match max maxvalue mbrcontains mbrdisjoint mbrintersects
    mbroverlaps mbrtouches mbrwithin medium mediumblob mediumint mediumtext microsecond mid middleint min minute
    minute_microsecond minute_second mod modifies month monthname name_const names national natural nchar no
    no_write_to_binlog not now null nullif number numeric nvarchar oct octet_length offset on open optimize option
    optionally options or ord order out outer outfile owner parser partition password period_add period_diff pi port
    position pow power precision prepare primary procedure purge quarter quote radians rand random_bytes range read
    read_write reads real references regexp release release_lock remove rename repair repeat replace require reset
    resignal restore restrict return reverse revoke right rlike rollback round row row_count rows rpad rtrim
    savepoint schema schemas sec_to_time second second_microsecond security select sensitive separator serial server
    session session_user set sha2 show shutdown sign signal signed sin slave sleep smallint socket some soname
    soundex sounds space spatial specific sql sql_after_gtids sql_before_gtids sql_big_result sql_buffer_result
    sql_calc_found_rows sql_no_cache sql_small_result sql_tsi_day sql_tsi_hour sql_tsi_minute sql_tsi_month
    sql_tsi_second sql_tsi_year sqlexception sqlstate sqlwarning sqrt srid ssl st_area st_asbinary st_astext
    st_aswkb st_aswkt st_buffer st_centroid st_contains st_crosses st_difference st_dimension st_disjoint
    st_distance st_endpoint st_envelope st_equals st_exteriorring st_geomcollfromtext st_geomcollfromwkb
    st_geometrycollectionfromtext st_geometrycollectionfromwkb st_geometryfromtext st_geometryfromwkb st_geometryn
    st_geometrytype st_geomfromtext st_geomfromwkb st_interiorringn st_intersection st_intersects st_isclosed
    st_isempty st_issimple st_length st_linefromtext st_linefromwkb st_linestringfromtext st_linestringfromwkb
    st_numgeometries st_numinteriorrings st_numpoints st_overlaps st_pointfromtext st_pointfromwkb st_pointn
    st_polyfromtext st_polyfromwkb st_polygonfromtext st_polygonfromwkb st_srid st_startpoint st_symdifference
    st_touches st_union st_within st_x st_y start starting stats_auto_recalc stats_persistent stats_sample_pages std
    stddev stddev_pop stddev_samp stop str_to_date straight_join strcmp subdate substr substring substring_index
    subtime sum sysdate system_user table tan terminated text then time time_format time_to_sec timediff timestamp
    timestampadd timestampdiff tinyblob tinyint tinytext to to_base64 to_days to_seconds trailing trigger trim true
    truncate ucase uncompress uncompressed_length undo unhex unicode uninstall union unique unix_timestamp unlock
    unsigned update updatexml upgrade upper usage use user using utc_date utc_time utc_timestamp uuid uuid_short
    value values var_pop var_samp varbinary varchar varcharacter variance varying version week weekday weekofyear
    weight_string when where while with wrapper write xa xor year year_month yearweek zerofill
    """
)

_MYSQL: Final = _words(
    """
    absent account action active admin after against aggregate algorithm allow_missing_files always any_value array
    assign_gtids_to_anonymous_transactions asynchronous_connection_failover_reset at attribute authentication auto
    auto_increment auto_refresh auto_refresh_source autoextend_size avg_row_length bernoulli bin_to_uuid block btree
    buckets bulk can_access_column can_access_database can_access_event can_access_resource_group can_access_routine
    can_access_table can_access_trigger can_access_user can_access_view cascaded catalog_name chain
    challenge_response changed channel cipher class_origin client clone column_format column_name columns committed
    compact completion component compression concurrent connection consistent constraint_catalog constraint_name
    constraint_schema context convert_cpu_id_mask convert_interval_to_user_interval cpu cube cume_dist current
    current_role current_role_in current_user_in cursor_name data datafile default_auth definer definition
    delay_key_write dense_rank description diagnostics directory disable discard disk duality dumpfile duplicate
    dynamic empty enable encryption ends enforced engine engine_attribute engines error errors escape etag event
    events every except exchange exclude expansion expire export extended extent_size external external_format
    factor failed_login_attempts fast faults fields file file_block_size file_format file_name file_pattern
    file_prefix files filter finish first first_value following follows format_bytes format_pico_time found
    from_vector full general generate generated geomcollection geometry geometrycollection get_dd_column_privileges
    get_dd_create_options get_dd_index_private_data get_dd_index_sub_part_length get_dd_property_key_value
    get_dd_schema_options get_dd_tablespace_private_data get_jdv_property_key_value get_source_public_key grants
    group_replication grouping groups gtid_only gtid_subset gtid_subtract gtids guided hash header histogram history
    hosts icu_version identified ignore_server_ids import inactive indexes initial initial_size initiate
    innodb_redo_log_archive_stop innodb_redo_log_sharp_checkpoint innodb_set_open_files_limit insert_method instance
    internal_auto_increment internal_avg_row_length internal_check_time internal_checksum internal_data_free
    internal_data_length internal_dd_char_length internal_get_comment_or_error internal_get_dd_column_extra
    internal_get_enabled_role_json internal_get_hostname internal_get_mandatory_roles_json
    internal_get_partition_nodegroup internal_get_username internal_get_view_warning_or_error
    internal_index_column_cardinality internal_index_length internal_is_enabled_role internal_is_mandatory_role
    internal_keys_disabled internal_max_data_length internal_table_rows internal_tablespace_autoextend_size
    internal_tablespace_data_free internal_tablespace_extent_size internal_tablespace_extra
    internal_tablespace_free_extents internal_tablespace_id internal_tablespace_initial_size
    internal_tablespace_logfile_group_name internal_tablespace_logfile_group_number internal_tablespace_maximum_size
    internal_tablespace_row_format internal_tablespace_status internal_tablespace_total_extents
    internal_tablespace_type internal_tablespace_version internal_update_time internal_use_terminology_previous
    intersect invisible invoker io io_after_gtids io_before_gtids io_thread ipc is_uuid is_visible_dd_object
    isolation issuer json json_array json_array_append json_array_insert json_arrayagg json_contains
    json_contains_path json_depth json_duality_object json_extract json_insert json_keys json_length json_merge
    json_merge_patch json_merge_preserve json_object json_objectagg json_overlaps json_pretty json_quote json_remove
    json_replace json_schema_valid json_schema_validation_report json_search json_set json_storage_free
    json_storage_size json_table json_type json_unquote json_valid json_value key_block_size keyring lag last
    last_value lateral lead leaves less level library linestring list locked locks logfile logs manual masking
    master materialized max_connections_per_hour max_queries_per_hour max_rows max_size max_updates_per_hour
    max_user_connections mbrcoveredby mbrcovers mbrequals member memory merge message_text migrate min_rows mode
    modify multilinestring multipoint multipolygon mutex mysql_errno name ndb ndbcluster nested network_namespace
    never new next no_wait nodegroup none nowait nth_value ntile nulls of off oj old one only optimizer_costs
    optional ordinality organization others over pack_keys page parallel parameters parse_tree partial partitioning
    partitions password_lock_time path percent_rank persist persist_only phase plugin plugin_dir plugins point
    policy polygon precedes preceding preserve prev privilege_checks_user privileges process processlist profile
    profiles proxy ps_current_thread_id ps_thread_id qualify query quick random rank read_only rebuild recover
    recursive redo_buffer_size redundant reference regexp_instr regexp_like regexp_replace regexp_substr
    registration relational relay relay_log_file relay_log_pos relay_thread relaylog release_all_locks reload
    remove_dd_property_key reorganize repeatable replica replicas replicate_do_db replicate_do_table
    replicate_ignore_db replicate_ignore_table replicate_rewrite_db replicate_wild_do_table
    replicate_wild_ignore_table replication require_row_format require_table_primary_key_check resource respect
    restart resume retain returned_sqlstate returning returns reuse role roles_graphml rollup rotate routine
    row_format row_number rtree s3 schedule schema_name secondary secondary_engine secondary_engine_attribute
    secondary_load secondary_unload serializable sets share simple skip slow snapshot source source_auto_position
    source_bind source_compression_algorithms source_connect_retry source_connection_auto_failover source_delay
    source_heartbeat_period source_host source_log_file source_log_pos source_password source_port source_pos_wait
    source_public_key_path source_retry_count source_ssl source_ssl_ca source_ssl_capath source_ssl_cert
    source_ssl_cipher source_ssl_crl source_ssl_crlpath source_ssl_key source_ssl_verify_server_cert
    source_tls_ciphersuites source_tls_version source_user source_zstd_compression_level sql_after_mts_gaps
    sql_thread sql_tsi_quarter sql_tsi_week st_asgeojson st_buffer_strategy st_collect st_convexhull
    st_distance_sphere st_frechetdistance st_geohash st_geomcollfromtxt st_geomfromgeojson st_hausdorffdistance
    st_isvalid st_latfromgeohash st_latitude st_lineinterpolatepoint st_lineinterpolatepoints st_longfromgeohash
    st_longitude st_makeenvelope st_mlinefromtext st_mlinefromwkb st_mpointfromtext st_mpointfromwkb
    st_mpolyfromtext st_mpolyfromwkb st_multilinestringfromtext st_multilinestringfromwkb st_multipointfromtext
    st_multipointfromwkb st_multipolygonfromtext st_multipolygonfromwkb st_numinteriorring st_pointatdistance
    st_pointfromgeohash st_simplify st_swapxy st_transform st_validate stacked starts statement_digest
    statement_digest_text status storage stored stream strict_load string string_to_vector subclass_origin subject
    subpartition subpartitions super suspend swaps switches system table_checksum table_name tables tablesample
    tablespace temporary temptable than thread_priority ties tls to_vector transaction triggers type types unbounded
    uncommitted undefined undo_buffer_size undofile unknown unregister until uri url use_frm user_resources
    uuid_to_bin validate validate_password_strength validation variables vcpu vector vector_dim vector_to_string
    verify_key_constraints version_with_update view virtual visible wait wait_for_executed_gtid_set warnings window
    without work x509 xid xml zone
    """
)

_OLD_MYSQL: Final = _words(
    """
    _filename action after against aggregate algorithm analyse area asbinary astext aswkb aswkt at auto_increment
    autoextend_size avg_row_length block btree buffer cascaded catalog_name centroid chain changed cipher
    class_origin client column_format column_name columns committed compact completion concurrent connection
    consistent constraint_catalog constraint_name constraint_schema context cpu crosses cube current cursor_name
    data datafile decode default_auth definer delay_key_write des_decrypt des_encrypt des_key_file diagnostics
    dimension directory disable discard disjoint disk dumpfile duplicate dynamic enable encode encrypt endpoint ends
    engine engines envelope equals error errors escape event events every exchange expansion expire export extended
    extent_size exteriorring fast faults fields file first found full general geomcollfromtext geomcollfromwkb
    geometry geometrycollection geometrycollectionfromtext geometrycollectionfromwkb geometryfromtext
    geometryfromwkb geometryn geometrytype geomfromtext geomfromwkb glength grants gtid_subset gtid_subtract hash
    hosts identified ignore_server_ids import indexes initial_size insert_method interiorringn intersects invoker io
    io_after_gtids io_before_gtids io_thread ipc isclosed isempty isolation issimple issuer key_block_size last
    leaves less level linefromtext linefromwkb linestring linestringfromtext linestringfromwkb list locks logfile
    logs master master_auto_position master_bind master_connect_retry master_delay master_heartbeat_period
    master_host master_log_file master_log_pos master_password master_port master_retry_count master_server_id
    master_ssl master_ssl_ca master_ssl_capath master_ssl_cert master_ssl_cipher master_ssl_crl master_ssl_crlpath
    master_ssl_key master_ssl_verify_server_cert master_user max_connections_per_hour max_queries_per_hour max_rows
    max_size max_updates_per_hour max_user_connections mbrequal md5 memory merge message_text migrate min_rows
    mlinefromtext mlinefromwkb mode modify mpointfromtext mpointfromwkb mpolyfromtext mpolyfromwkb multilinestring
    multilinestringfromtext multilinestringfromwkb multipoint multipointfromtext multipointfromwkb multipolygon
    multipolygonfromtext multipolygonfromwkb mutex mysql_errno name ndb ndbcluster new next no_wait nodegroup none
    numgeometries numinteriorrings numpoints old_password one only overlaps pack_keys page partial partitioning
    partitions phase plugin plugin_dir plugins point pointfromtext pointfromwkb pointn polyfromtext polyfromwkb
    polygon polygonfromtext polygonfromwkb preserve prev privileges process processlist profile profiles proxy query
    quick read_only rebuild recover redo_buffer_size redofile redundant relay relay_log_file relay_log_pos
    relay_thread relaylog reload reorganize repeatable replication resume returned_sqlstate returns rollup routine
    row_format rtree schedule schema_name serializable sha sha1 share simple slow snapshot source sql_after_mts_gaps
    sql_cache sql_thread sql_tsi_quarter sql_tsi_week startpoint starts status storage string subclass_origin
    subject subpartition subpartitions super suspend swaps switches table_checksum table_name tables tablespace
    temporary temptable than touches transaction triggers type types uncommitted undefined undo_buffer_size undofile
    unknown until use_frm user_resources validate_password_strength variables view wait
    wait_until_sql_thread_after_gtids warnings within work x x509 xml y
    """
)

_MARIADB: Final = _words(
    """
    _filename add_months area asbinary astext aswkb aswkt binlog_gtid_pos boundary buffer centroid checkpoint chr
    clob column_add column_check column_create column_delete column_exists column_get column_json column_list
    concat_operator_oracle convexhull crc32c crosses cume_dist current_role decode decode_histogram decode_oracle
    delete_domain_id dense_rank des_decrypt des_encrypt dimension disjoint do_domain_ids encode encrypt endpoint
    envelope equals examined except exclude exteriorring first_value following follows format_bytes format_pico_time
    geomcollfromtext geomcollfromwkb geometrycollection geometrycollectionfromtext geometrycollectionfromwkb
    geometryfromtext geometryfromwkb geometryn geometrytype geomfromtext geomfromwkb glength id ignore_domain_ids
    ignored interiorringn intersect intersects isclosed isempty isring issimple json json_array json_array_append
    json_array_insert json_array_intersect json_arrayagg json_compact json_contains json_contains_path json_depth
    json_detailed json_equals json_exists json_extract json_insert json_key_value json_keys json_length json_loose
    json_merge json_merge_patch json_merge_preserve json_normalize json_object json_object_filter_keys
    json_object_to_array json_objectagg json_overlaps json_pretty json_query json_quote json_remove json_replace
    json_schema_valid json_search json_set json_type json_unquote json_valid json_value kdf lag last_value lastval
    lead lengthb linefromtext linefromwkb linestring linestringfromtext linestringfromwkb lpad_oracle ltrim_oracle
    master_demote_to_replica master_demote_to_slave master_gtid_wait master_ssl_verify_server_cert mbrequal
    mbrequals md5 median mlinefromtext mlinefromwkb mpointfromtext mpointfromwkb mpolyfromtext mpolyfromwkb
    multilinestring multilinestringfromtext multilinestringfromwkb multipoint multipointfromtext multipointfromwkb
    multipolygon multipolygonfromtext multipolygonfromwkb natural_sort_key nextval nth_value ntile numgeometries
    numinteriorrings numpoints nvl nvl2 old_password others over overlaps page_checksum parse_vcol_expr percent_rank
    percentile_cont percentile_disc period point pointfromtext pointfromwkb pointn pointonsurface polyfromtext
    polyfromwkb polygon polygonfromtext polygonfromwkb portion precedes preceding rank raw record recursive
    ref_system_id regexp_instr regexp_replace regexp_substr release_all_locks replace_oracle replica replicas
    returning role row_number rownum rpad_oracle rtrim_oracle setval sformat sha sha1 slaves sql_cache st_asgeojson
    st_boundary st_convexhull st_distance_sphere st_geomfromgeojson st_isring st_mlinefromtext st_mlinefromwkb
    st_mpointfromtext st_mpointfromwkb st_mpolyfromtext st_mpolyfromwkb st_multilinestringfromtext
    st_multilinestringfromwkb st_multipointfromtext st_multipointfromwkb st_multipolygonfromtext
    st_multipolygonfromwkb st_pointonsurface st_relate startpoint stored substr_oracle sys_guid ties to_char touches
    trim_oracle unbounded uuid_v4 uuid_v7 varchar2 vec_distance vec_distance_cosine vec_distance_euclidean
    vec_fromtext vec_totext vector window within wsrep_last_seen_gtid wsrep_last_written_gtid
    wsrep_sync_wait_upto_gtid x y
    """
)

# Functions of MySQL up to 9.5; a component adds them to later servers.
_HASHES: Final = frozenset({"md5", "sha", "sha1"})

# MariaDB has functions with these names, too, if somebody stores them. But these words have a place in the grammar.
_SYNTAX_OF_MARIADB: Final = frozenset({"against", "columns", "json_table", "minus"})


@cache
def own_words(flavor: Flavor, version: tuple[int, ...]) -> frozenset[str]:
    """Return the words of a server, in lower case. MySQL 5.7 gets those of the versions before and after it."""
    if flavor == "mariadb":
        return _ALL | _MARIADB | _SYNTAX_OF_MARIADB
    if version >= (8,):
        return _ALL | _MYSQL | _HASHES
    return _ALL | _OLD_MYSQL | (_MYSQL if version >= (5, 7) else frozenset())
