-- What is an error here and not there; nothing that follows depends on it.
CREATE TABLE refused (id INT8 PRIMARY KEY, a INT8, b TEXT);
INSERT INTO refused VALUES (7, 1.5) RETURNING a;
INSERT INTO refused VALUES (8, 2.5) RETURNING a;
INSERT INTO refused VALUES (10, 1, 5) RETURNING b;
INSERT INTO refused (id, b) VALUES (14, upper('abc')) RETURNING b;
INSERT INTO refused (id, b) VALUES (15, (SELECT max(b) FROM refused)) RETURNING b;
INSERT INTO refused (id, a) VALUES (16, abs(-5)), (17, length('abc')) RETURNING id, a;
INSERT INTO refused VALUES (18) RETURNING id;
