-- Regular expressions: what matches, the longest of several matches, groups, and every function.
CREATE TABLE p (k INT8 PRIMARY KEY, s TEXT, r TEXT, c CHAR(6));
INSERT INTO p VALUES (1, 'daylight', 'day|daylight', 'ab'), (2, 'xyz é ß', '\w+', 'abc'), (3, '', 'x*', ''), (4, 'foobarbequebaz', '(bar)(beque)', NULL), (5, NULL, 'a', 'x'), (6, E'one\ntwo', '^t', 'a b'), (7, 'a1_b-2', '[[:punct:]]', 'q');

-- The longest of several alternatives, wherever they stand.
SELECT regexp_match('daylight', 'day|daylight'), substring('daylight' from 'day|daylight');
SELECT regexp_replace('abcd', 'a|ab|abc', '-'), regexp_replace('abcabd', 'ab|abc', '-', 'g');
SELECT regexp_match('xyz', '(x|xy)(y|z)?'), regexp_match('aab', 'a*(ab)?');
SELECT regexp_match('ab', '(|a)b'), regexp_match('ab', '(a|)(b|)'), regexp_match('key', 'key(x*)?'), regexp_match('b', '(a)?(b)');
SELECT k, s ~ r, regexp_match(s, r), substring(s from r) FROM p ORDER BY k;
SELECT k, regexp_replace(s, r, '<\&>', 'g'), regexp_split_to_array(s, r) FROM p ORDER BY k;

-- Greedy, or not.
SELECT substring('XY1234Z', 'Y*([0-9]{1,3})');
SELECT regexp_match('abc01234xyz', '(.*)(\d+)(.*)');
SELECT regexp_match('aaa', 'a+?');
SELECT regexp_replace('<a><b>', '<.*?>', '-'), regexp_replace('<a><b>', '<.*>', '-'), regexp_replace('<a><b>', '<.*?>', '-', 'g');
SELECT regexp_match('aabb', '(a{2})(b+?)');
SELECT regexp_match('ab', '(a*)*'), regexp_match('b', '(a*)*'), regexp_match('b', '(a*)+');

-- Letters and classes, of every alphabet.
SELECT 'é' ~ '^\w$', 'é' ~ '^[[:alpha:]]$', 'É' ~ '[[:upper:]]', 'é' ~ '\W', '-' ~ '[\w-]', 'ß' ~* 'SS', 'ǅ' ~ '[[:lower:]]';
SELECT s ~ '[[:alpha:]]{3}', s ~ '[[:punct:]]', s ~ '^[[:print:]]*$', s ~ '[[:cntrl:]]', s ~ '[[:space:]]', s ~ '[^[:alnum:]_]' FROM p ORDER BY k;
SELECT '٣' ~ '\d', '٣' ~ '[[:digit:]]', '٣' ~ '\w', 'Ⅷ' ~ '[[:upper:]]', 'ª' ~ '[[:lower:]]', E'\u00a0' ~ '\s', E'\u2003' ~ '\s', E'\x0b' ~ '\s', E'\u0301' ~ '\w', E'\u093e' ~ '\w';
SELECT 'K' ~* 'k', 'ſ' ~* 's', 'Σ' ~* 'ς', 'ς' ~* 'Σ', 'σ' ~* 'ς', 'É' ~* 'é', 'é' ~* '[À-Ý]', 'İ' ~* 'i';
SELECT 'a' ~ '[^a-c]', 'b' ~ '[]b]', ']' ~ '[]b]', '-' ~ '[a-]', '-' ~ '[-a]', '\' ~ '[\\]', '^' ~ '[a^]';
SELECT 'a b' ~ 'a\bb', 'ab' ~ 'b\Z', E'a\tb' ~ 'a\tb', 'ab' ~ '\Aab', 'A' ~ '\x41', 'A' ~ '\u0041', 'é' ~ '\xe9', '\' ~ '\B', '{' ~ '{', 'a{,2}' ~ 'a{,2}', 'a{' ~ 'a{';
SELECT E'a\nb' ~ 'a.b', E'a\nb' ~ '(?n)a.b', E'a\nb' ~ '(?p)a.b', E'a\nb' ~ '(?n)a$', E'a\nb' ~ '(?w)^b', E'a\nb' ~ '(?w)a.b', E'a\nb' ~ '(?p)^b', E'a\nb' ~ '(?n)a[^x]b', E'a\nb' ~ '(?n)a\Wb', E'a\nb' ~ '(?n)\Ab';
SELECT 'AB' ~ '(?i)ab', 'Ab' ~ '(?ic)ab';
SELECT 'a' ~ NULL, NULL ~ 'a', 'a' ~ '', '' ~ '', '' ~ '^$', 'a' ~ '^$', 'a' ~ '()', 'a' ~ 'a|';
SELECT 'a' ~ ANY (ARRAY['b', 'A']), 'a' ~* ANY (ARRAY['b', 'A']), 'a' ~ ALL (ARRAY['a', '\w']), 'a' !~ ALL (ARRAY['b', NULL]), s ~ ANY (ARRAY[r, 'zz']) FROM p ORDER BY k;
SELECT c ~ '^ab +$', c ~ '^.{6}$', c !~ 'b', regexp_match(c, '.+'), regexp_replace(c, '$', '|') FROM p ORDER BY k;
SELECT k FROM p WHERE s ~ '^[df]' ORDER BY k;
SELECT k FROM p WHERE s ~* 'LIGHT|BAR' AND k < 9 ORDER BY k;
SELECT count(*) FROM p GROUP BY s ~ 'a' ORDER BY 1;

-- Functions with all their arguments.
SELECT regexp_replace('abc', 'x*', '-', 'g'), regexp_replace('abc', 'b*', '-', 'g'), regexp_replace('', 'x*', '-', 'g'), regexp_replace('aé', '', '-', 'g');
SELECT regexp_replace('ab', 'a', '\0x'), regexp_replace('ab', '(a)', '[\1\&]\\\&\2'), regexp_replace('ab', 'a', '\'), regexp_replace('ab', 'a', '\q'), regexp_replace('ab', '(x)?b', '<\1>');
SELECT regexp_replace('né à', '\w+', 'x', 'g'), regexp_replace(E'1\n2', '.', '-', 'gn'), regexp_replace('AbC', '[a-z]', '', 'gi'), regexp_replace(s, '(.)(.)', r) FROM p ORDER BY k;
SELECT regexp_replace('a', 'a', 'b', 'z');
SELECT regexp_match('abc', 'B', 'i'), regexp_match('abc', 'x'), regexp_match(NULL, 'x'), regexp_match('abc', 'b()');
SELECT regexp_match('abc', 'b', 'g');
SELECT regexp_split_to_array('the quick  brown', '\s+'), regexp_split_to_array('the', '\s*'), regexp_split_to_array('', ','), regexp_split_to_array(',a,', ','), regexp_split_to_array('aXbxc', 'X', 'i'), regexp_split_to_array('daylight', 'y|yl'), regexp_split_to_array('abc', '');
SELECT regexp_split_to_array('a', 'b', 'g');

-- Functions that return rows.
SELECT regexp_matches('foobarbequebazilbarfbonk', '(b[^b]+)(b[^b]+)', 'g');
SELECT regexp_matches('foobarbequebaz', 'ba.'), 1 AS one;
SELECT regexp_matches('foo', 'x', 'g');
SELECT (regexp_matches('foobarbequebaz', 'ba(.)', 'g'))[1];
SELECT * FROM regexp_matches('a1b2', '([a-z])(\d)', 'g') AS m;
SELECT * FROM regexp_matches('a1b2', '[a-z]|b2', 'g') WITH ORDINALITY AS t (m, n);
SELECT p.k, m FROM p, regexp_matches(p.s, '[a-z]{3}', 'g') AS m ORDER BY 1, 2;
SELECT k, (SELECT array_agg(x) FROM regexp_split_to_table(s, '[aeiou]') AS x) FROM p ORDER BY k;
SELECT regexp_split_to_table('the quick brown', '\s+');
SELECT * FROM regexp_split_to_table('a,b,,c', ',') AS t (x);
SELECT w, count(*) FROM regexp_split_to_table('b a b', ' ') AS w GROUP BY w ORDER BY w;
SELECT regexp_split_to_table('ab', '');

SELECT substring('foobar' from 'o.b'), substring('foobar' from 'o(.)b');

-- Errors.
SELECT 'é' ~ '\w' COLLATE "C";
SELECT lower('É' COLLATE "C");
SELECT 'a' ~ '(';
SELECT 'a' ~ 'a)';
SELECT 'a' ~ '[a';
SELECT 'a' ~ '*a';
SELECT 'a' ~ 'a**';
SELECT 'a' ~ 'a{2,1}';
SELECT 'a' ~ 'a{256}';
SELECT 'a' ~ 'a{1';
SELECT 'a' ~ '[b-a]';
SELECT 'a' ~ '[[:nope:]]';
SELECT 'a' ~ 'a\';
SELECT 'a' ~ '\q';
SELECT 'a' ~ '(?z)a';
SELECT 'a' ~ '(?<a)';
SELECT 'a' ~ '^*';
SELECT s ~ '(' FROM p WHERE k < 0;
SELECT 'aa' ~ '(a)\1';
DROP TABLE p;
