-- Days and series: integers out of columns beside dates.
CREATE TABLE s (id INT8 PRIMARY KEY, days INT4, d DATE);
INSERT INTO s VALUES (1, 3, '2020-02-27'), (2, -3, '2020-03-01'), (3, NULL, '2020-01-01');
SELECT id, d + days, d - days, days + d FROM s ORDER BY id;
SELECT id, d - (d - days) FROM s ORDER BY id;
SELECT DATE '2020-01-01' + g FROM generate_series(0, 2) AS t(g) ORDER BY g;
SELECT DATE '2020-01-01' + g % 365 FROM generate_series(364, 366) AS g ORDER BY 1;
SELECT g / 2, g % 2, g * 1.5 FROM generate_series(1, 3) AS t(g) ORDER BY g;
SELECT sum(g), avg(g) FROM generate_series(1, 4) AS t(g);
SELECT * FROM generate_series(TIMESTAMPTZ '2021-01-01', TIMESTAMPTZ '2021-01-03', INTERVAL '1 day', 'UTC');
SELECT generate_series(1, 5, 2, 3);
