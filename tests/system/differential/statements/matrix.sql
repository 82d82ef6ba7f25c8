-- A table with a column of each type: usual values, extreme ones, and NULL.
CREATE TABLE z (id INT8 PRIMARY KEY, i INT8, n NUMERIC(10,2), f FLOAT8, s TEXT, v VARCHAR(5), b BOOL, y BYTEA, d DATE, t TIME, ts TIMESTAMP, tz TIMESTAMPTZ, iv INTERVAL, u UUID, ai INT8[], at TEXT[]);
INSERT INTO z VALUES (1, 5, 1.50, 0.5, 'abc', 'ab', true, '\x0102', '2024-02-29', '12:34:56.5', '2024-02-29 12:34:56.5', '2024-02-29 12:34:56.5+00', '1 mon 2 days 03:04:05.5', 'f47ac10b-58cc-4372-a567-0e02b2c3d479', '{1,2,3}', '{a,NULL,"b c"}'),
(2, -7, -2.25, 'NaN', '', '', false, '\x', '1999-12-31', '00:00', '1999-12-31 23:59:59.999999', '1999-12-31 23:59:59.999999+00', '-1 days +02:00:00', '00000000-0000-0000-0000-000000000000', '{}', '{}'),
(3, 0, 0, 'Infinity', '12', '7', NULL, '\xff00', '0001-01-01', '23:59:59.999999', '0001-01-01 00:00:00', '0001-01-01 00:00:00+00', '0', 'ffffffff-ffff-ffff-ffff-ffffffffffff', '{NULL,5}', '{12,7}'),
(4, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
(5, 9223372036854775807, 99999999.99, -0.0, 'Zä %_', 'x''y', true, '\x00', '9999-12-31', '06:00', '9999-12-31 00:00:00', '2024-07-01 10:00:00+02', '1 year -3 days', '11111111-1111-1111-1111-111111111111', '{9223372036854775807}', '{NULL}');
