"""The tables of pg_catalog by PostgreSQL 15's columns, each with the letter of its type.

Those at the end are always empty, because there is nothing here that they could tell of: clients
join them. There are no triggers, policies, partitions, subscriptions, foreign servers, large
objects, extensions or searches of text; and how aggregates and indexes are built is not told.
"""

from __future__ import annotations

TABLES = """
pg_namespace 1
    oid:o nspname nspowner:o nspacl:S
pg_class 2
    oid:o relname relnamespace:o reltype:o reloftype:o relowner:o relam:o relfilenode:o
    reltablespace:o relpages:i reltuples:f relallvisible:i reltoastrelid:o relhasindex:b
    relisshared:b relpersistence:c relkind:c relnatts:i relchecks:i relhasrules:b
    relhastriggers:b relhassubclass:b relrowsecurity:b relforcerowsecurity:b relispopulated:b
    relreplident:c relispartition:b relacl:S reloptions:S relpartbound relfrozenxid:i
    relminmxid:i
pg_attribute 3
    attrelid:o attname atttypid:o attstattarget:i attlen:i attnum:i attndims:i attcacheoff:i
    atttypmod:i attbyval:b attstorage:c attalign:c attcompression:c attnotnull:b atthasdef:b
    atthasmissing:b attidentity:c attgenerated:c attisdropped:b attislocal:b attinhcount:i
    attcollation:o attacl:S attoptions:S attmissingval attfdwoptions:S
pg_attrdef 4
    oid:o adrelid:o adnum:i adbin
pg_type 5
    oid:o typname typnamespace:o typowner:o typlen:i typbyval:b typtype:c typcategory:c
    typispreferred:b typisdefined:b typdelim:c typrelid:o typsubscript typelem:o typarray:o
    typinput typoutput typreceive typsend typmodin typmodout typanalyze typalign:c typstorage:c
    typnotnull:b typbasetype:o typtypmod:i typndims:i typcollation:o typdefaultbin typdefault
    typacl:S
pg_index 6
    indexrelid:o indrelid:o indnatts:i indnkeyatts:i indisunique:b indnullsnotdistinct:b
    indisprimary:b indisexclusion:b indimmediate:b indisclustered:b indisvalid:b indcheckxmin:b
    indisready:b indislive:b indisreplident:b indkey:v indcollation:V indclass:V indoption:v
    indexprs indpred
pg_constraint 7
    oid:o conname connamespace:o contype:c condeferrable:b condeferred:b convalidated:b
    conrelid:o contypid:o conindid:o conparentid:o confrelid:o confupdtype:c confdeltype:c
    confmatchtype:c conislocal:b coninhcount:i connoinherit:b conkey:I confkey:I conpfeqop:O
    conppeqop:O conffeqop:O confdelsetcols:I conexclop:O conbin
pg_database 8
    oid:o datname datdba:o encoding:i datlocprovider:c datistemplate:b datallowconn:b
    datconnlimit:i datfrozenxid:i datminmxid:i dattablespace:o datcollate datctype daticulocale
    datcollversion datacl:S
pg_roles 9
    rolname rolsuper:b rolinherit:b rolcreaterole:b rolcreatedb:b rolcanlogin:b rolreplication:b
    rolconnlimit:i rolpassword rolvaliduntil rolbypassrls:b rolconfig:S oid:o
pg_authid 10
    rolname rolsuper:b rolinherit:b rolcreaterole:b rolcreatedb:b rolcanlogin:b rolreplication:b
    rolconnlimit:i rolpassword rolvaliduntil rolbypassrls:b rolconfig:S oid:o
pg_user 11
    usename usesysid:o usecreatedb:b usesuper:b userepl:b usebypassrls:b passwd valuntil
    useconfig:S
pg_auth_members 12
    roleid:o member:o grantor:o admin_option:b
pg_proc 13
    oid:o proname pronamespace:o proowner:o prolang:o procost:f prorows:f provariadic:o
    prosupport prokind:c prosecdef:b proleakproof:b proisstrict:b proretset:b provolatile:c
    proparallel:c pronargs:i pronargdefaults:i prorettype:o proargtypes:V proallargtypes:O
    proargmodes:S proargnames:S proargdefaults protrftypes:O prosrc probin prosqlbody
    proconfig:S proacl:S
pg_operator 64
    oid:o oprname oprnamespace:o oprowner:o oprkind:c oprcanmerge:b oprcanhash:b oprleft:o
    oprright:o oprresult:o oprcom:o oprnegate:o oprcode oprrest oprjoin
pg_cast 55
    oid:o castsource:o casttarget:o castfunc:o castcontext:c castmethod:c
pg_description 14
    objoid:o classoid:o objsubid:i description
pg_shdescription 15
    objoid:o classoid:o description
pg_settings 16
    name setting unit category short_desc extra_desc context vartype source min_val max_val
    enumvals:S boot_val reset_val sourcefile sourceline:i pending_restart:b
pg_am 17
    oid:o amname amhandler amtype:c
pg_collation 18
    oid:o collname collnamespace:o collowner:o collprovider:c collisdeterministic:b
    collencoding:i collcollate collctype colliculocale collversion
pg_tables 19
    schemaname tablename tableowner tablespace hasindexes:b hasrules:b hastriggers:b
    rowsecurity:b
pg_indexes 20
    schemaname tablename indexname tablespace indexdef
pg_views 21
    schemaname viewname viewowner definition
pg_enum 23
    oid:o enumtypid:o enumsortorder:f enumlabel
pg_tablespace 32
    oid:o spcname spcowner:o spcacl:S spcoptions:S
pg_sequence 33
    seqrelid:o seqtypid:o seqstart:i seqincrement:i seqmax:i seqmin:i seqcache:i seqcycle:b
pg_rewrite 36
    oid:o rulename ev_class:o ev_type:c ev_enabled:c is_instead:b ev_qual ev_action
pg_depend 37
    classid:o objid:o objsubid:i refclassid:o refobjid:o refobjsubid:i deptype:c
pg_stat_activity 41
    datid:o datname pid:i leader_pid:i usesysid:o usename application_name client_addr
    client_hostname client_port:i backend_start:t xact_start:t query_start:t state_change:t
    wait_event_type wait_event state backend_xid:i backend_xmin:i query_id:i query backend_type
pg_sequences 42
    schemaname sequencename sequenceowner data_type start_value:i min_value:i max_value:i
    increment_by:i cycle:b cache_size:i last_value:i
pg_extension 34
    oid:o extname extowner:o extnamespace:o extrelocatable:b extversion extconfig:O
    extcondition:S
pg_locks 90
    locktype database:o relation:o page:i tuple:i virtualxid transactionid classid:o objid:o
    objsubid:i virtualtransaction pid:i mode granted:b fastpath:b waitstart:t
pg_prepared_statements 91
    name statement prepare_time:t parameter_types:S from_sql:b generic_plans:i custom_plans:i
pg_cursors 92
    name statement is_holdable:b is_binary:b is_scrollable:b creation_time:t
pg_default_acl 44
    oid:o defaclrole:o defaclnamespace:o defaclobjtype:c defaclacl:S
pg_get_keywords 43
    word catcode:c barelabel:b catdesc baredesc
"""
"""A name and a number, for ever the table's; behind them its columns. No letter is a text's."""

EMPTY_TABLES = """
pg_aggregate 50
    aggfnoid aggkind:c aggnumdirectargs:i aggtransfn aggfinalfn aggcombinefn aggserialfn
    aggdeserialfn aggmtransfn aggminvtransfn aggmfinalfn aggfinalextra:b aggmfinalextra:b
    aggfinalmodify:c aggmfinalmodify:c aggsortop:o aggtranstype:o aggtransspace:i
    aggmtranstype:o aggmtransspace:i agginitval aggminitval
pg_amop 51
    oid:o amopfamily:o amoplefttype:o amoprighttype:o amopstrategy:i amoppurpose:c amopopr:o
    amopmethod:o amopsortfamily:o
pg_amproc 52
    oid:o amprocfamily:o amproclefttype:o amprocrighttype:o amprocnum:i amproc
pg_available_extension_versions 53
    name version installed:b superuser:b trusted:b relocatable:b schema requires:S comment
pg_available_extensions 54
    name default_version installed_version comment
pg_conversion 56
    oid:o conname connamespace:o conowner:o conforencoding:i contoencoding:i conproc
    condefault:b
pg_db_role_setting 57
    setdatabase:o setrole:o setconfig:S
pg_event_trigger 58
    oid:o evtname evtevent evtowner:o evtfoid:o evtenabled:c evttags:S
pg_foreign_data_wrapper 59
    oid:o fdwname fdwowner:o fdwhandler:o fdwvalidator:o fdwacl:S fdwoptions:S
pg_foreign_server 60
    oid:o srvname srvowner:o srvfdw:o srvtype srvversion srvacl:S srvoptions:S
pg_foreign_table 40
    ftrelid:o ftserver:o ftoptions:S
pg_inherits 24
    inhrelid:o inhparent:o inhseqno:i inhdetachpending:b
pg_init_privs 61
    objoid:o classoid:o objsubid:i privtype:c initprivs:S
pg_language 35
    oid:o lanname lanowner:o lanispl:b lanpltrusted:b lanplcallfoid:o laninline:o lanvalidator:o
    lanacl:S
pg_largeobject 62
    loid:o pageno:i data:y
pg_largeobject_metadata 63
    oid:o lomowner:o lomacl:S
pg_matviews 38
    schemaname matviewname matviewowner tablespace hasindexes:b ispopulated:b definition
pg_opclass 31
    oid:o opcmethod:o opcname opcnamespace:o opcowner:o opcfamily:o opcintype:o opcdefault:b
    opckeytype:o
pg_opfamily 65
    oid:o opfmethod:o opfname opfnamespace:o opfowner:o
pg_parameter_acl 66
    oid:o parname paracl:S
pg_partitioned_table 39
    partrelid:o partstrat:c partnatts:i partdefid:o partattrs:v partclass:V partcollation:V
    partexprs
pg_policy 25
    oid:o polname polrelid:o polcmd:c polpermissive:b polroles:O polqual polwithcheck
pg_prepared_xacts 68
    transaction:i gid prepared:t owner database
pg_publication 27
    oid:o pubname pubowner:o puballtables:b pubinsert:b pubupdate:b pubdelete:b pubtruncate:b
    pubviaroot:b
pg_publication_namespace 29
    oid:o pnpubid:o pnnspid:o
pg_publication_rel 28
    oid:o prpubid:o prrelid:o prqual prattrs:v
pg_range 22
    rngtypid:o rngsubtype:o rngmultitypid:o rngcollation:o rngsubopc:o rngcanonical rngsubdiff
pg_rules 72
    schemaname tablename rulename definition
pg_seclabels 74
    objoid:o classoid:o objsubid:i objtype objnamespace:o objname provider label
pg_shseclabel 76
    objoid:o classoid:o provider label
pg_statistic_ext 26
    oid:o stxrelid:o stxname stxnamespace:o stxowner:o stxstattarget:i stxkeys:v stxkind:S
    stxexprs
pg_subscription 79
    oid:o subdbid:o subskiplsn subname subowner:o subenabled:b subbinary:b substream:b
    subtwophasestate:c subdisableonerr:b subconninfo subslotname subsynccommit subpublications:S
pg_transform 81
    oid:o trftype:o trflang:o trffromsql trftosql
pg_trigger 30
    oid:o tgrelid:o tgparentid:o tgname tgfoid:o tgtype:i tgenabled:c tgisinternal:b
    tgconstrrelid:o tgconstrindid:o tgconstraint:o tgdeferrable:b tginitdeferred:b tgnargs:i
    tgattr:v tgargs:y tgqual tgoldtable tgnewtable
pg_ts_config 82
    oid:o cfgname cfgnamespace:o cfgowner:o cfgparser:o
pg_ts_config_map 83
    mapcfg:o maptokentype:i mapseqno:i mapdict:o
pg_ts_dict 84
    oid:o dictname dictnamespace:o dictowner:o dicttemplate:o dictinitoption
pg_ts_parser 85
    oid:o prsname prsnamespace:o prsstart prstoken prsend prsheadline prslextype
pg_ts_template 86
    oid:o tmplname tmplnamespace:o tmplinit tmpllexize
pg_user_mappings 88
    umid:o srvid:o srvname umuser:o usename umoptions:S
"""
