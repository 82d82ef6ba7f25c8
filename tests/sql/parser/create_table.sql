CREATE TABLE t (k INT8 PRIMARY KEY, v STRING)
----
CreateTable(table=ObjectName(parts=('t'), position=14), columns=(ColumnDefinition(name='k', type=TypeName(name='int8', arguments=(), position=19), nullable=None, default=None, primary_key=True, position=17, computed=None, constraints=(), hidden=False, identity=None, primary_name=None), ColumnDefinition(name='v', type=TypeName(name='string', arguments=(), position=39), nullable=None, default=None, primary_key=False, position=37, computed=None, constraints=(), hidden=False, identity=None, primary_name=None)), primary_key=('k'), if_not_exists=False, parameters=(), primary_name=None, elements=(), temporary=False)

create table if not exists db.public."T x" (a numeric(10, 2) not null default -1.5, b double precision null default now(), c timestamp with time zone default '2020-01-01'::timestamptz not null, constraint pk primary key (a, "B")) with (schema_locked = true, fillfactor = 70, note = 'x')
----
CreateTable(table=ObjectName(parts=('db', 'public', 'T x'), position=28), columns=(ColumnDefinition(name='a', type=TypeName(name='numeric', arguments=(10, 2), position=47), nullable=False, default=‹-1.5›, primary_key=False, position=45, computed=None, constraints=(), hidden=False, identity=None, primary_name=None), ColumnDefinition(name='b', type=TypeName(name='double precision', arguments=(), position=87), nullable=True, default=‹CURRENT_TIMESTAMP›, primary_key=False, position=85, computed=None, constraints=(), hidden=False, identity=None, primary_name=None), ColumnDefinition(name='c', type=TypeName(name='timestamp with time zone', arguments=(), position=126), nullable=False, default=‹CAST('2020-01-01' AS TIMESTAMPTZ)›, primary_key=False, position=124, computed=None, constraints=(), hidden=False, identity=None, primary_name=None)), primary_key=('a', 'B'), if_not_exists=True, parameters=(Option(name='schema_locked', value='true', position=237), Option(name='fillfactor', value='70', position=259), Option(name='note', value='x', position=276)), primary_name='pk', elements=(), temporary=False)

CREATE TABLE t (k INT8
----
position 23: syntax error at end of input (SQLSTATE 42601)
HINT: Expected ")".

CREATE TABLE t (k)
----
position 18: syntax error at or near ")" (SQLSTATE 42601)
HINT: Expected a column's type.

CREATE TABLE t (k INT8 UNIQUE)
----
CreateTable(table=ObjectName(parts=('t'), position=14), columns=(ColumnDefinition(name='k', type=TypeName(name='int8', arguments=(), position=19), nullable=None, default=None, primary_key=False, position=17, computed=None, constraints=(IndexDefinition(name=None, columns=('k'), position=24, unique=True, constraint=True, storing=(), descending=())), hidden=False, identity=None, primary_name=None)), primary_key=(), if_not_exists=False, parameters=(), primary_name=None, elements=(), temporary=False)

CREATE TABLE select (k INT8)
----
position 14: syntax error at or near "select" (SQLSTATE 42601)
HINT: Expected a table's name. "select" is a reserved word: put it in double quotes to use it as a name.

CREATE TABLE t (k INT8, PRIMARY KEY (k), PRIMARY KEY (k))
----
position 42: multiple primary keys for table "t" are not allowed (SQLSTATE 42P16)

CREATE TABLE t (k INT8 NULL NOT NULL)
----
position 29: conflicting or redundant clauses for column "k" (SQLSTATE 42601)

CREATE TABLE t (a INT8[])
----
CreateTable(table=ObjectName(parts=('t'), position=14), columns=(ColumnDefinition(name='a', type=TypeName(name='int8[]', arguments=(), position=19), nullable=None, default=None, primary_key=False, position=17, computed=None, constraints=(), hidden=False, identity=None, primary_name=None)), primary_key=(), if_not_exists=False, parameters=(), primary_name=None, elements=(), temporary=False)

CREATE TABLE t ()
----
position 17: syntax error at or near ")" (SQLSTATE 42601)
HINT: Expected PRIMARY KEY, UNIQUE, CHECK, FOREIGN KEY, INDEX or a column's name.

CREATE TABLE t (job text, key bytes, "index" int)
----
CreateTable(table=ObjectName(parts=('t'), position=14), columns=(ColumnDefinition(name='job', type=TypeName(name='text', arguments=(), position=21), nullable=None, default=None, primary_key=False, position=17, computed=None, constraints=(), hidden=False, identity=None, primary_name=None), ColumnDefinition(name='key', type=TypeName(name='bytes', arguments=(), position=31), nullable=None, default=None, primary_key=False, position=27, computed=None, constraints=(), hidden=False, identity=None, primary_name=None), ColumnDefinition(name='index', type=TypeName(name='int', arguments=(), position=46), nullable=None, default=None, primary_key=False, position=38, computed=None, constraints=(), hidden=False, identity=None, primary_name=None)), primary_key=(), if_not_exists=False, parameters=(), primary_name=None, elements=(), temporary=False)

CREATE INDEX i ON t (a)
----
CreateIndex(table=ObjectName(parts=('t'), position=19), index=IndexDefinition(name='i', columns=('a'), position=14, unique=False, constraint=False, storing=(), descending=()), if_not_exists=False, text='CREATE INDEX i ON t (a)')

CREATE DATABASE IF NOT EXISTS shop
----
CreateDatabase(name='shop', if_not_exists=True)

CREATE TABLE a.b.c.d (k int)
----
position 14: improper qualified name (too many dots): a.b.c.d (SQLSTATE 42601)

CREATE TABLE t (k int default)
----
position 30: syntax error at or near ")" (SQLSTATE 42601)
HINT: Expected a constant.

CREATE TABLE t (k INT8 GENERATED BY DEFAULT AS IDENTITY (START WITH 5) PRIMARY KEY)
----
CreateTable(table=ObjectName(parts=('t'), position=14), columns=(ColumnDefinition(name='k', type=TypeName(name='int8', arguments=(), position=19), nullable=False, default=None, primary_key=True, position=17, computed=None, constraints=(), hidden=False, identity=IdentityClause(identity=BY_DEFAULT, options=SequenceChange(position=58, bits=None, start=5, increment=None, minimum=None, maximum=None, cycle=None, cache=None, owned_by=None, restarts=False, restart=None, name=None)), primary_name=None)), primary_key=('k'), if_not_exists=False, parameters=(), primary_name=None, elements=(), temporary=False)

CREATE TABLE t (k INT8 GENERATED BY IDENTITY)
----
position 37: syntax error at or near "IDENTITY" (SQLSTATE 42601)
HINT: Expected DEFAULT AS IDENTITY.
