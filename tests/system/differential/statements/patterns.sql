-- Regular expressions: what matches, and every function.
CREATE TABLE p (k INT8 PRIMARY KEY, s TEXT, r TEXT, c CHAR(6));
INSERT INTO p VALUES (1, 'daylight', 'day|daylight', 'ab'), (2, 'xyz é ß', '\w+', 'abc'), (3, '', 'x*', ''), (4, 'foobarbequebaz', '(bar)(beque)', NULL), (5, NULL, 'a', 'x'), (6, E'one\ntwo', '^t', 'a b'), (7, 'a1_b-2', '[[:punct:]]', 'q');

SELECT substring('XY1234Z', 'Y*([0-9]{1,3})');

-- Letters and classes, of every alphabet.
SELECT 'é' ~ '^\w$', 'é' ~ '^[[:alpha:]]$', 'É' ~ '[[:upper:]]', 'é' ~ '\W', '-' ~ '[\w-]', 'ß' ~* 'SS';
SELECT s ~ '[[:alpha:]]{3}', s ~ '[[:punct:]]', s ~ '^[[:print:]]*$', s ~ '[[:cntrl:]]', s ~ '[[:space:]]', s ~ '[^[:alnum:]_]' FROM p ORDER BY k;
SELECT '٣' ~ '\d', '٣' ~ '[[:digit:]]', '٣' ~ '\w', chr(160) ~ '\s', chr(8195) ~ '\s', chr(11) ~ '\s';
SELECT 'K' ~* 'k', 'ſ' ~* 's', 'Σ' ~* 'ς', 'ς' ~* 'Σ', 'σ' ~* 'ς', 'É' ~* 'é', 'é' ~* '[À-Ý]', 'İ' ~* 'i';
SELECT 'a' ~ '[^a-c]', 'b' ~ '[]b]', ']' ~ '[]b]', '-' ~ '[a-]', '-' ~ '[-a]', '\' ~ '[\\]', '^' ~ '[a^]';
SELECT 'a b' ~ 'a\bb', 'ab' ~ 'b\Z', E'a\tb' ~ 'a\tb', 'ab' ~ '\Aab', '\' ~ '\B', '{' ~ '{', 'a{,2}' ~ 'a{,2}', 'a{' ~ 'a{';
SELECT 'a' ~ NULL, NULL ~ 'a', 'a' ~ '', '' ~ '', '' ~ '^$', 'a' ~ '^$', 'a' ~ '()', 'a' ~ 'a|';
SELECT k FROM p WHERE s ~ '^[df]' ORDER BY k;
SELECT k FROM p WHERE s ~* 'LIGHT|BAR' AND k < 9 ORDER BY k;
SELECT count(*) FROM p GROUP BY s ~ 'a' ORDER BY 1;

SELECT k, s ~ r FROM p ORDER BY k;



-- Errors.
SELECT 'é' ~ '\w' COLLATE "C";
SELECT lower('É' COLLATE "C");
SELECT 'a' ~ '(';
SELECT 'a' ~ 'a)';
SELECT 'a' ~ '[a';
SELECT 'a' ~ '*a';
SELECT 'a' ~ 'a**';
SELECT 'a' ~ 'a{2,1}';
SELECT 'a' ~ 'a{1';
SELECT 'a' ~ '[b-a]';
SELECT 'a' ~ '[[:nope:]]';
SELECT 'a' ~ 'a\';
SELECT 'aa' ~ '(a)\1';
SELECT 'a' ~ '^*';
DROP TABLE p;
