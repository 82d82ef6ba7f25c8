"""Tables of pg_catalog that are empty, because there is nothing here that they could tell of.

Clients join them. There are no triggers, policies, partitions, subscriptions, foreign servers,
large objects, extensions or searches of text; and how aggregates and indexes are built is not told.
"""

from __future__ import annotations

EMPTY_TABLES: tuple[tuple[int, str, str], ...] = (
    (
        50,
        "pg_aggregate",
        "aggfnoid:s aggkind:c aggnumdirectargs:i aggtransfn:s aggfinalfn:s aggcombinefn:s "
        "aggserialfn:s aggdeserialfn:s aggmtransfn:s aggminvtransfn:s aggmfinalfn:s "
        "aggfinalextra:b aggmfinalextra:b aggfinalmodify:c aggmfinalmodify:c aggsortop:o "
        "aggtranstype:o aggtransspace:i aggmtranstype:o aggmtransspace:i agginitval:s "
        "aggminitval:s",
    ),
    (
        51,
        "pg_amop",
        "oid:o amopfamily:o amoplefttype:o amoprighttype:o amopstrategy:i amoppurpose:c amopopr:o "
        "amopmethod:o amopsortfamily:o",
    ),
    (
        52,
        "pg_amproc",
        "oid:o amprocfamily:o amproclefttype:o amprocrighttype:o amprocnum:i amproc:s",
    ),
    (
        53,
        "pg_available_extension_versions",
        "name:s version:s installed:b superuser:b trusted:b relocatable:b schema:s requires:S "
        "comment:s",
    ),
    (54, "pg_available_extensions", "name:s default_version:s installed_version:s comment:s"),
    (
        56,
        "pg_conversion",
        "oid:o conname:s connamespace:o conowner:o conforencoding:i contoencoding:i conproc:s "
        "condefault:b",
    ),
    (57, "pg_db_role_setting", "setdatabase:o setrole:o setconfig:S"),
    (
        58,
        "pg_event_trigger",
        "oid:o evtname:s evtevent:s evtowner:o evtfoid:o evtenabled:c evttags:S",
    ),
    (
        59,
        "pg_foreign_data_wrapper",
        "oid:o fdwname:s fdwowner:o fdwhandler:o fdwvalidator:o fdwacl:S fdwoptions:S",
    ),
    (
        60,
        "pg_foreign_server",
        "oid:o srvname:s srvowner:o srvfdw:o srvtype:s srvversion:s srvacl:S srvoptions:S",
    ),
    (40, "pg_foreign_table", "ftrelid:o ftserver:o ftoptions:S"),
    (24, "pg_inherits", "inhrelid:o inhparent:o inhseqno:i inhdetachpending:b"),
    (61, "pg_init_privs", "objoid:o classoid:o objsubid:i privtype:c initprivs:S"),
    (
        35,
        "pg_language",
        "oid:o lanname:s lanowner:o lanispl:b lanpltrusted:b lanplcallfoid:o laninline:o "
        "lanvalidator:o lanacl:S",
    ),
    (62, "pg_largeobject", "loid:o pageno:i data:y"),
    (63, "pg_largeobject_metadata", "oid:o lomowner:o lomacl:S"),
    (
        38,
        "pg_matviews",
        "schemaname:s matviewname:s matviewowner:s tablespace:s hasindexes:b ispopulated:b "
        "definition:s",
    ),
    (
        31,
        "pg_opclass",
        "oid:o opcmethod:o opcname:s opcnamespace:o opcowner:o opcfamily:o opcintype:o "
        "opcdefault:b opckeytype:o",
    ),
    (65, "pg_opfamily", "oid:o opfmethod:o opfname:s opfnamespace:o opfowner:o"),
    (66, "pg_parameter_acl", "oid:o parname:s paracl:S"),
    (
        39,
        "pg_partitioned_table",
        "partrelid:o partstrat:c partnatts:i partdefid:o partattrs:v partclass:V partcollation:V "
        "partexprs:s",
    ),
    (
        67,
        "pg_policies",
        "schemaname:s tablename:s policyname:s permissive:s roles:S cmd:s qual:s with_check:s",
    ),
    (
        25,
        "pg_policy",
        "oid:o polname:s polrelid:o polcmd:c polpermissive:b polroles:O polqual:s polwithcheck:s",
    ),
    (68, "pg_prepared_xacts", "transaction:i gid:s prepared:t owner:s database:s"),
    (
        27,
        "pg_publication",
        "oid:o pubname:s pubowner:o puballtables:b pubinsert:b pubupdate:b pubdelete:b "
        "pubtruncate:b pubviaroot:b",
    ),
    (29, "pg_publication_namespace", "oid:o pnpubid:o pnnspid:o"),
    (28, "pg_publication_rel", "oid:o prpubid:o prrelid:o prqual:s prattrs:v"),
    (69, "pg_publication_tables", "pubname:s schemaname:s tablename:s attnames:S rowfilter:s"),
    (
        22,
        "pg_range",
        "rngtypid:o rngsubtype:o rngmultitypid:o rngcollation:o rngsubopc:o rngcanonical:s "
        "rngsubdiff:s",
    ),
    (70, "pg_replication_origin", "roident:o roname:s"),
    (
        71,
        "pg_replication_slots",
        "slot_name:s plugin:s slot_type:s datoid:o database:s temporary:b active:b active_pid:i "
        "xmin:i catalog_xmin:i restart_lsn:s confirmed_flush_lsn:s wal_status:s safe_wal_size:i "
        "two_phase:b",
    ),
    (72, "pg_rules", "schemaname:s tablename:s rulename:s definition:s"),
    (73, "pg_seclabel", "objoid:o classoid:o objsubid:i provider:s label:s"),
    (
        620,
        "pg_stats",
        "schemaname:s tablename:s attname:s inherited:b null_frac:f avg_width:i n_distinct:f "
        "most_common_vals:S most_common_freqs:S histogram_bounds:S correlation:f "
        "most_common_elems:S most_common_elem_freqs:S elem_count_histogram:S",
    ),
    (
        621,
        "pg_stat_progress_create_index",
        "pid:i datid:o datname:s relid:o index_relid:o command:s phase:s lockers_total:i "
        "lockers_done:i current_locker_pid:i blocks_total:i blocks_done:i tuples_total:i "
        "tuples_done:i partitions_total:i partitions_done:i",
    ),
    (
        622,
        "pg_stat_progress_copy",
        "pid:i datid:o datname:s relid:o command:s type:s bytes_processed:i bytes_total:i "
        "tuples_processed:i tuples_excluded:i",
    ),
    (
        623,
        "pg_stat_progress_analyze",
        "pid:i datid:o datname:s relid:o phase:s sample_blks_total:i sample_blks_scanned:i "
        "ext_stats_total:i ext_stats_computed:i child_tables_total:i child_tables_done:i "
        "current_child_table_relid:o",
    ),
    (
        624,
        "pg_stat_progress_basebackup",
        "pid:i phase:s backup_total:i backup_streamed:i tablespaces_total:i tablespaces_streamed:i",
    ),
    (
        625,
        "pg_stat_subscription",
        "subid:o subname:s pid:i relid:o received_lsn:s last_msg_send_time:t "
        "last_msg_receipt_time:t latest_end_lsn:s latest_end_time:t",
    ),
    (
        74,
        "pg_seclabels",
        "objoid:o classoid:o objsubid:i objtype:s objnamespace:o objname:s provider:s label:s",
    ),
    (75, "pg_shdepend", "dbid:o classid:o objid:o objsubid:i refclassid:o refobjid:o deptype:c"),
    (76, "pg_shseclabel", "objoid:o classoid:o provider:s label:s"),
    (
        26,
        "pg_statistic_ext",
        "oid:o stxrelid:o stxname:s stxnamespace:o stxowner:o stxstattarget:i stxkeys:v stxkind:S "
        "stxexprs:s",
    ),
    (
        77,
        "pg_statistic_ext_data",
        "stxoid:o stxdinherit:b stxdndistinct:s stxddependencies:s stxdmcv:s stxdexpr:S",
    ),
    (
        78,
        "pg_stats_ext",
        "schemaname:s tablename:s statistics_schemaname:s statistics_name:s statistics_owner:s "
        "attnames:S exprs:S kinds:S inherited:b n_distinct:s dependencies:s most_common_vals:S "
        "most_common_val_nulls:S most_common_freqs:S most_common_base_freqs:S",
    ),
    (
        79,
        "pg_subscription",
        "oid:o subdbid:o subskiplsn:s subname:s subowner:o subenabled:b subbinary:b substream:b "
        "subtwophasestate:c subdisableonerr:b subconninfo:s subslotname:s subsynccommit:s "
        "subpublications:S",
    ),
    (80, "pg_subscription_rel", "srsubid:o srrelid:o srsubstate:c srsublsn:s"),
    (81, "pg_transform", "oid:o trftype:o trflang:o trffromsql:s trftosql:s"),
    (
        30,
        "pg_trigger",
        "oid:o tgrelid:o tgparentid:o tgname:s tgfoid:o tgtype:i tgenabled:c tgisinternal:b "
        "tgconstrrelid:o tgconstrindid:o tgconstraint:o tgdeferrable:b tginitdeferred:b tgnargs:i "
        "tgattr:v tgargs:y tgqual:s tgoldtable:s tgnewtable:s",
    ),
    (82, "pg_ts_config", "oid:o cfgname:s cfgnamespace:o cfgowner:o cfgparser:o"),
    (83, "pg_ts_config_map", "mapcfg:o maptokentype:i mapseqno:i mapdict:o"),
    (
        84,
        "pg_ts_dict",
        "oid:o dictname:s dictnamespace:o dictowner:o dicttemplate:o dictinitoption:s",
    ),
    (
        85,
        "pg_ts_parser",
        "oid:o prsname:s prsnamespace:o prsstart:s prstoken:s prsend:s prsheadline:s prslextype:s",
    ),
    (86, "pg_ts_template", "oid:o tmplname:s tmplnamespace:o tmplinit:s tmpllexize:s"),
    (87, "pg_user_mapping", "oid:o umuser:o umserver:o umoptions:S"),
    (88, "pg_user_mappings", "umid:o srvid:o srvname:s umuser:o usename:s umoptions:S"),
)
"""Numbers, names, and columns with the letters of their types."""
