GRANT SELECT, INSERT ON orders TO ada
----
GrantPrivileges(privileges=(PrivilegeName(name='SELECT', position=7), PrivilegeName(name='INSERT', position=15)), target=GrantTarget(kind=TABLE, names=(ObjectName(parts=('orders'), position=25))), grantees=('ada'), revoke=False)

GRANT ALL PRIVILEGES ON TABLE shop.public.orders, lines TO ada, bo
----
GrantPrivileges(privileges=(PrivilegeName(name='ALL', position=7)), target=GrantTarget(kind=TABLE, names=(ObjectName(parts=('shop', 'public', 'orders'), position=31), ObjectName(parts=('lines'), position=51))), grantees=('ada', 'bo'), revoke=False)

GRANT SELECT ON ALL TABLES IN SCHEMA public TO ada
----
GrantPrivileges(privileges=(PrivilegeName(name='SELECT', position=7)), target=GrantTarget(kind=TABLES_IN_SCHEMA, names=(ObjectName(parts=('public'), position=38))), grantees=('ada'), revoke=False)

GRANT CREATE ON DATABASE shop TO public
----
GrantPrivileges(privileges=(PrivilegeName(name='CREATE', position=7)), target=GrantTarget(kind=DATABASE, names=(ObjectName(parts=('shop'), position=26))), grantees=('public'), revoke=False)

GRANT SYSTEM CONTROLJOB, VIEWJOB TO ada
----
GrantPrivileges(privileges=(PrivilegeName(name='CONTROLJOB', position=14), PrivilegeName(name='VIEWJOB', position=26)), target=GrantTarget(kind=SYSTEM, names=()), grantees=('ada'), revoke=False)

GRANT reader, writer TO ada
----
GrantRoles(roles=('reader', 'writer'), members=('ada'), revoke=False)

GRANT SELECT TO ada
----
position 14: syntax error at or near "TO" (SQLSTATE 42601)
HINT: Expected ON.

GRANT SELECT ON orders TO ada WITH GRANT OPTION
----
position 31: not supported: the option to pass a right on (SQLSTATE 0A000)
HINT: Owners grant rights on what they own, CREATEROLE makes members of roles.

REVOKE reader FROM ada CASCADE
----
GrantRoles(roles=('reader'), members=('ada'), revoke=True)

ALTER TABLE orders OWNER TO ada
----
SetOwner(kind=TABLE, name=ObjectName(parts=('orders'), position=13), owner='ada')

ALTER DATABASE shop OWNER TO ada
----
SetOwner(kind=DATABASE, name=ObjectName(parts=('shop'), position=16), owner='ada')

REASSIGN OWNED BY ada, bo TO root
----
position 1: not supported: REASSIGN OWNED (SQLSTATE 0A000)
HINT: ALTER … OWNER TO gives a thing to another role.

DROP OWNED BY ada
----
position 1: not supported: DROP OWNED (SQLSTATE 0A000)
HINT: REVOKE takes back what a role was granted.

CREATE ROLE reader
----
CreateUser(name='reader', options=RoleOptions(password=None, password_given=False, login=None, granted=(), revoked=()), if_not_exists=False, login=False)

CREATE USER ada WITH PASSWORD 'x' CREATEDB NOCREATEROLE
----
CreateUser(name='ada', options=RoleOptions(password='x', password_given=True, login=None, granted=('CREATEDB'), revoked=('CREATEROLE')), if_not_exists=False, login=True)

CREATE USER ada SUPERUSER
----
position 17: not supported: SUPERUSER (SQLSTATE 0A000)
HINT: GRANT admin TO the role: its members may do everything.

ALTER USER ada PASSWORD NULL
----
AlterUser(name='ada', options=RoleOptions(password=None, password_given=True, login=None, granted=(), revoked=()))

ALTER USER ada
----
AlterUser(name='ada', options=RoleOptions(password=None, password_given=False, login=None, granted=(), revoked=()))

GRANT USAGE, UPDATE ON SEQUENCE shop.numbers TO ada
----
GrantPrivileges(privileges=(PrivilegeName(name='USAGE', position=7), PrivilegeName(name='UPDATE', position=14)), target=GrantTarget(kind=SEQUENCE, names=(ObjectName(parts=('shop', 'numbers'), position=33))), grantees=('ada'), revoke=False)

REVOKE ALL ON ALL SEQUENCES IN SCHEMA public, shop FROM reader
----
GrantPrivileges(privileges=(PrivilegeName(name='ALL', position=8)), target=GrantTarget(kind=SEQUENCES_IN_SCHEMA, names=(ObjectName(parts=('public'), position=39), ObjectName(parts=('shop'), position=47))), grantees=('reader'), revoke=True)

GRANT USAGE ON TYPE mood TO public
----
GrantPrivileges(privileges=(PrivilegeName(name='USAGE', position=7)), target=GrantTarget(kind=TYPE, names=(ObjectName(parts=('mood'), position=21))), grantees=('public'), revoke=False)

ALTER SEQUENCE numbers OWNER TO ada
----
SetOwner(kind=SEQUENCE, name=ObjectName(parts=('numbers'), position=16), owner='ada')

ALTER TYPE mood OWNER TO ada
----
SetOwner(kind=TYPE, name=ObjectName(parts=('mood'), position=12), owner='ada')

SET ROLE reader
----
ActAs(name='reader', local=False, reset=False, position=10)

SET LOCAL ROLE 'reader'
----
ActAs(name='reader', local=True, reset=False, position=16)

SET role TO NONE
----
ActAs(name=None, local=False, reset=False, position=13)

RESET ROLE
----
ActAs(name=None, local=False, reset=True, position=7)

SET SESSION AUTHORIZATION ada
----
position 1: not supported: SET SESSION AUTHORIZATION (SQLSTATE 0A000)
HINT: Log in as the user, or SET ROLE to a role that you are a member of.

SET ROLE
----
position 9: syntax error at end of input (SQLSTATE 42601)
HINT: Expected DEFAULT, NONE or a role's name.

ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT USAGE ON SEQUENCES TO ada
----
position 1: not supported: ALTER DEFAULT PRIVILEGES (SQLSTATE 0A000)
HINT: GRANT SELECT ON SCHEMA s, or ON DATABASE d, holds for every table in it, later ones too.
