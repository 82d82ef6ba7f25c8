-- The table that generated statements are about.
CREATE TABLE v (id INT8 PRIMARY KEY, i INT8, j INT8, n NUMERIC(12,3), f FLOAT8, s TEXT, t TEXT, b BOOL, d DATE, ts TIMESTAMP, tz TIMESTAMPTZ, u UUID, y BYTEA);
INSERT INTO v VALUES (1, 1, 10, 1.500, 0.5, 'apple', 'Pie', true, '2020-02-29', '2020-02-29 12:34:56.789', '2020-02-29 12:34:56+00', 'f47ac10b-58cc-4372-a567-0e02b2c3d479', '\x01');
INSERT INTO v VALUES (2, -7, 3, -2.250, -1.25, 'banana', '', false, '1999-12-31', '1999-12-31 23:59:59', '1999-12-31 23:59:59+00', '00000000-0000-0000-0000-000000000001', '\xff00');
INSERT INTO v VALUES (3, 0, 0, 0.000, 0, '', 'x_y%z', NULL, '2024-01-01', '2024-01-01', '2024-06-01 00:00:00+00', NULL, '\x');
INSERT INTO v VALUES (4, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO v VALUES (5, 9223372036854775807, -9223372036854775808, 999999999.999, 1e300, 'Ünïcode ß', 'tab	end', true, '0001-01-01', '9999-12-31 23:59:59.999999', '1970-01-01 00:00:00+00', 'ffffffff-ffff-ffff-ffff-ffffffffffff', 'text');
INSERT INTO v VALUES (6, 42, -42, 1234.567, 3.14159, 'apple', 'APPLE', false, '2020-03-01', '2020-03-01 00:00:00', '2020-03-01 01:00:00+01', 'f47ac10b-58cc-4372-a567-0e02b2c3d479', '\x01');
-- DEFAULT is what a generated column may be given.
CREATE TABLE regenerated (k INT8 PRIMARY KEY, twice INT8 GENERATED ALWAYS AS (k * 2) STORED);
INSERT INTO regenerated VALUES (1, DEFAULT), (2, DEFAULT);
UPDATE regenerated SET k = k + 10, twice = DEFAULT WHERE k = 2;
INSERT INTO regenerated VALUES (1) ON CONFLICT (k) DO UPDATE SET k = 5, twice = DEFAULT;
UPDATE regenerated SET twice = 4;
SELECT * FROM regenerated ORDER BY k;
CREATE TABLE regenerated_too (k INT8, n INT8 GENERATED ALWAYS AS (generate_series(1, k)) STORED);
