"""Classes of letters: what `\\w`, `[[:alpha:]]` and their like are of every alphabet.

The classes are those of PostgreSQL with the locale C.UTF-8 of the GNU C library (Unicode 14):
a letter is of the categories L, Nl and Nd (without 0-9) or has the property Other_Alphabetic.
"""

from __future__ import annotations

import re

_UPPER_BESIDES = "2160-216f 24b6-24cf 1f130-1f149 1f150-1f169 1f170-1f189"
_LOWER_BESIDES = (
    "aa ba 2b0-2b8 2c0-2c1 2e0-2e4 345 37a 1d2c-1d6a 1d78 1d9b-1dbf 2071 207f 2090-209c "
    "2170-217f 24d0-24e9 2c7c-2c7d a69c-a69d a770 a7f8-a7f9 ab5c-ab5f 10780 10783-10785 "
    "10787-107b0 107b2-107ba"
)
_TITLE = "1c5 1c8 1cb 1f2"
"""Beside Lu, Ll and Lt, of which the other letters are upper."""
_ALPHABETIC_MARKS = (
    "345 5b0-5bd 5bf 5c1-5c2 5c4-5c5 5c7 610-61a 64b-657 659-65f 670 6d6-6dc 6e1-6e4 6e7-6e8 6ed "
    "711 730-73f 7a6-7b0 816-817 81b-823 825-827 829-82c 8d4-8df 8e3-8e9 8f0-903 93a-93b 93e-94c "
    "94e-94f 955-957 962-963 981-983 9be-9c4 9c7-9c8 9cb-9cc 9d7 9e2-9e3 a01-a03 a3e-a42 a47-a48 "
    "a4b-a4c a51 a70-a71 a75 a81-a83 abe-ac5 ac7-ac9 acb-acc ae2-ae3 afa-afc b01-b03 b3e-b44 "
    "b47-b48 b4b-b4c b56-b57 b62-b63 b82 bbe-bc2 bc6-bc8 bca-bcc bd7 c00-c03 c3e-c44 c46-c48 "
    "c4a-c4c c55-c56 c62-c63 c81-c83 cbe-cc4 cc6-cc8 cca-ccc cd5-cd6 ce2-ce3 d00-d03 d3e-d44 "
    "d46-d48 d4a-d4c d57 d62-d63 d81-d83 dcf-dd4 dd6 dd8-ddf df2-df3 e31 e34-e3a e4d eb1 eb4-eb9 "
    "ebb-ebc ecd f71-f81 f8d-f97 f99-fbc 102b-1036 1038 103b-103e 1056-1059 105e-1060 1062-1064 "
    "1067-106d 1071-1074 1082-108d 108f 109a-109d 1712-1713 1732-1733 1752-1753 1772-1773 "
    "17b6-17c8 1885-1886 18a9 1920-192b 1930-1938 1a17-1a1b 1a55-1a5e 1a61-1a74 1abf-1ac0 "
    "1acc-1ace 1b00-1b04 1b35-1b43 1b80-1b82 1ba1-1ba9 1bac-1bad 1be7-1bf1 1c24-1c36 1de7-1df4 "
    "2de0-2dff a674-a67b a69e-a69f a802 a80b a823-a827 a880-a881 a8b4-a8c3 a8c5 a8ff a926-a92a "
    "a947-a952 a980-a983 a9b4-a9bf a9e5 aa29-aa36 aa43 aa4c-aa4d aa7b-aa7d aab0 aab2-aab4 "
    "aab7-aab8 aabe aaeb-aaef aaf5 abe3-abea fb1e 10376-1037a 10a01-10a03 10a05-10a06 10a0c-10a0f "
    "10d24-10d27 10eab-10eac 11000-11002 11038-11045 11073-11074 11082 110b0-110b8 110c2 "
    "11100-11102 11127-11132 11145-11146 11180-11182 111b3-111bf 111ce-111cf 1122c-11234 11237 "
    "1123e 112df-112e8 11300-11303 1133e-11344 11347-11348 1134b-1134c 11357 11362-11363 "
    "11435-11441 11443-11445 114b0-114c1 115af-115b5 115b8-115be 115dc-115dd 11630-1163e 11640 "
    "116ab-116b5 1171d-1172a 1182c-11838 11930-11935 11937-11938 1193b-1193c 11940 11942 "
    "119d1-119d7 119da-119df 119e4 11a01-11a0a 11a35-11a39 11a3b-11a3e 11a51-11a5b 11a8a-11a97 "
    "11c2f-11c36 11c38-11c3e 11c92-11ca7 11ca9-11cb6 11d31-11d36 11d3a 11d3c-11d3d 11d3f-11d41 "
    "11d43 11d47 11d8a-11d8e 11d90-11d91 11d93-11d96 11ef3-11ef6 16f4f 16f51-16f87 16f8f-16f92 "
    "16ff0-16ff1 1bc9e 1e000-1e006 1e008-1e018 1e01b-1e021 1e023-1e024 1e026-1e02a 1e947 "
)
"""The combining marks (Mn, Mc) that have the property Other_Alphabetic."""
_DIGITS_ELSEWHERE = (
    "660-669 6f0-6f9 7c0-7c9 966-96f 9e6-9ef a66-a6f ae6-aef b66-b6f be6-bef c66-c6f ce6-cef "
    "d66-d6f de6-def e50-e59 ed0-ed9 f20-f29 1040-1049 1090-1099 17e0-17e9 1810-1819 1946-194f "
    "19d0-19d9 1a80-1a89 1a90-1a99 1b50-1b59 1bb0-1bb9 1c40-1c49 1c50-1c59 a620-a629 a8d0-a8d9 "
    "a900-a909 a9d0-a9d9 a9f0-a9f9 aa50-aa59 abf0-abf9 ff10-ff19 104a0-104a9 10d30-10d39 "
    "11066-1106f 110f0-110f9 11136-1113f 111d0-111d9 112f0-112f9 11450-11459 114d0-114d9 "
    "11650-11659 116c0-116c9 11730-11739 118e0-118e9 11950-11959 11c50-11c59 11d50-11d59 "
    "11da0-11da9 16a60-16a69 16ac0-16ac9 16b50-16b59 1d7ce-1d7ff 1e140-1e149 1e2f0-1e2f9 "
    "1e950-1e959 1fbf0-1fbf9 "
)
"""The category Nd without 0 to 9."""


def written(code: int) -> str:
    """Returns a letter in RE2's syntax, within or outside of brackets."""
    letter = chr(code)
    if 0xD800 <= code <= 0xDFFF or code < 0x20 or code == 0x7F:
        return f"\\x{{{code:x}}}"
    return re.escape(letter) if letter.isascii() and letter != " " else letter


def _body(ranges: str, categories: str = "") -> str:
    """Returns what stands within RE2's brackets for categories and ranges of code points."""
    pairs = (part.partition("-") for part in ranges.split())
    return categories + "".join(
        f"{written(int(low, 16))}-{written(int(high or low, 16))}" for low, _, high in pairs
    )


_BESIDE = f"{_ALPHABETIC_MARKS}{_UPPER_BESIDES} {_LOWER_BESIDES}"
_GRAPH = _body("a0 2007 202f", r"\pL\pM\pN\pP\pS\p{Cf}\p{Co}")
_ALNUM = _body(_BESIDE, r"\pL\p{Nl}\p{Nd}")
CLASSES: dict[str, str] = {
    "alpha": _body(f"{_BESIDE} {_DIGITS_ELSEWHERE}", r"\pL\p{Nl}"),
    "alnum": _ALNUM,
    "word": f"{_ALNUM}_",
    "upper": _body(_UPPER_BESIDES, r"\p{Lu}\p{Lt}"),
    "lower": _body(f"{_LOWER_BESIDES} {_TITLE}", r"\p{Ll}"),
    "digit": "0-9",
    "punct": r"\pP\pS\p{No}\p{Me}\p{Cf}\p{Co}",
    "graph": _GRAPH,
    "print": _GRAPH + _body("20 1680 2000-2006 2008-200a 205f 3000"),
    "space": _body("9-d 20 1680 2000-2006 2008-200a 2028-2029 205f 3000"),
    "blank": _body("9 20"),
    "cntrl": _body("0-1f 7f-9f"),
    "ascii": _body("0-7f"),
    "xdigit": "0-9A-Fa-f",
}
"""The text of each class within RE2's brackets: the digits of other alphabets are letters, and
the spaces at which a line may be broken are printed and not seen."""
NO_DIGIT = _body("0-2f 3a-10ffff")
NO_SPACE = _body("0-8 e-1f 21-167f 1681-1fff 2007 200b-2027 202a-205e 2060-2fff 3001-10ffff")
