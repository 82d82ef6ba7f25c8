"""The tables of pg_catalog that are always empty: clients join them.

There are no triggers, policies, partitions, subscriptions, foreign servers, large objects,
extensions or searches of text; and how aggregates and indexes are built is not told.
"""

from __future__ import annotations

from ..virtual_table import PG_CATALOG

PG_CATALOG.empty_tables("""
pg_default_acl 44
    oid:o defaclrole:o defaclnamespace:o defaclobjtype:c defaclacl:S
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
pg_locks 90
    locktype database:o relation:o page:i tuple:i virtualxid transactionid classid:o objid:o
    objsubid:i virtualtransaction pid:i mode granted:b fastpath:b waitstart:t
pg_opfamily 65
    oid:o opfmethod:o opfname opfnamespace:o opfowner:o
pg_parameter_acl 66
    oid:o parname paracl:S
pg_partitioned_table 39
    partrelid:o partstrat:c partnatts:i partdefid:o partattrs:v partclass:V partcollation:V
    partexprs
pg_policy 25
    oid:o polname polrelid:o polcmd:c polpermissive:b polroles:O polqual polwithcheck
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
pg_policies 67
    schemaname tablename policyname permissive roles:S cmd qual with_check
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
""")
