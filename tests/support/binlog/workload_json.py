"""JSON documents of every kind that the binary format can store."""

from __future__ import annotations

import json
import random

WHOLE_NUMBERS = [0, 1, -1, 127, 128, 255, 256, 32767, 32768, -32768, -32769, 65535, 65536]
WHOLE_NUMBERS += [2147483647, 2147483648, -2147483648, -2147483649, 4294967295, 4294967296]
WHOLE_NUMBERS += [9223372036854775807, 9223372036854775808, -9223372036854775808, 18446744073709551615]
REAL_NUMBERS = [
    "0.0",
    "-0.0",
    "64.0",
    "0.1",
    "1.5",
    "-2.25",
    "1e15",
    "1e16",
    "1e17",
    "1e20",
    "1e100",
    "1.5e-10",
    "1e-5",
]
REAL_NUMBERS += [
    "1e-4",
    "123456789.125",
    "1.7976931348623157e308",
    "5e-324",
    "0.30000000000000004",
    "18446744073709551616",
]

# JSON text cannot express these values: the server keeps their type.
OPAQUE = [
    "json_object('d', cast('1.50' as decimal(10,2)), 'n', cast('-99999999999999999999.000000001' as decimal(38,9)))",
    "json_array(cast('2024-02-29' as date), cast('0000-00-00' as date), cast('9999-12-31' as date))",
    "json_array(cast('2024-01-01 12:34:56.5' as datetime(6)), cast('1000-01-01 00:00:00' as datetime))",
    "json_array(cast('12:34:56' as time), cast('-838:59:58.999999' as time(6)), cast('-00:00:00.5' as time(1)))",
    "json_array(timestamp('2024-01-01 00:00:01'), timestamp('1999-12-31 23:59:59.123'))",
    "json_array(cast(x'00ff80' as binary), cast('text' as binary))",
    "json_array(cast(2024 as year), b'101')",
    "cast(cast('3.14' as decimal(3,2)) as json)",
    "cast(cast('2024-01-01 00:00:00' as datetime) as json)",
    "cast(cast(x'ff' as binary) as json)",
    "json_object('deep', json_array(json_object('money', cast('0.10' as decimal(20,10)))))",
    "cast(18446744073709551615 as json)",
    "cast(1e0/3e0 as json)",
    "cast(true as json)",
    "json_array(null, true, false, 1, 'text')",
]


def literals(flavor: str, random_numbers: random.Random) -> list[str]:
    """Return SQL expressions of documents; no opaque values for MariaDB, which has no JSON type."""
    texts = ["null", "true", "false", '""', '"text"', "{}", "[]", "[[]]", "[{}]", '{"": ""}', '{"a": null}']
    texts += [str(number) for number in WHOLE_NUMBERS] + REAL_NUMBERS
    texts.append("[" + ", ".join(map(str, WHOLE_NUMBERS)) + "]")
    texts.append("[" + ", ".join(REAL_NUMBERS) + "]")
    texts.append('[null, true, false, [null, true, false], {"a": true, "b": false, "c": null}]')
    texts.append(json.dumps({"é": "Zürich", "🎁": "日本語", "\u2028": "\u2029\ufeff"}, ensure_ascii=False))
    texts.append(json.dumps('"quotes" \\ / \b\f\n\r\t\x00\x01\x1f\x7f \u00a0 <script>&amp;\''))
    texts.append(json.dumps({"b": 1, "a": 2, "aa": 3, "c": 4, "A": 5, "B b": 6}))
    # Lengths around the limits of the variable-length encoding, and of the offsets of small documents.
    texts += [json.dumps("x" * length) for length in (127, 128, 255, 256, 16383, 16384, 65530, 65536, 70_000)]
    texts += [json.dumps({"k" * length: length}) for length in (127, 128, 255, 256, 5000)]
    texts.append(json.dumps(["y" * 65_000, 1, -70_000, 32_768, "z" * 1000, None, True]))
    texts.append(json.dumps([{"n": number, "t": f"text {number}"} for number in range(4000)]))
    texts.append(json.dumps({f"key {number:05}": number * 1001 - 500_000 for number in range(5000)}))
    texts.append(json.dumps({f"k{number}": None if number % 3 else True for number in range(300)}))
    depth = 99 if flavor == "mysql" else 31  # the servers allow 100 and 32
    texts.append("[" * depth + "1" + "]" * depth)
    texts.append('{"a": ' * depth + "1.5" + "}" * depth)
    texts += [json.dumps(_value(random_numbers, 4), ensure_ascii=False) for _ in range(60)]
    if flavor == "mariadb":
        return [f"_utf8mb4 x'{text.encode().hex()}'" for text in texts]
    return [f"cast(convert(x'{text.encode().hex()}' using utf8mb4) as json)" for text in texts] + OPAQUE


def _value(random_numbers: random.Random, depth: int) -> object:
    match random_numbers.randrange(9 if depth else 6):
        case 0:
            return random_numbers.choice([None, True, False])
        case 1:
            return random_numbers.randrange(-(2 ** random_numbers.randint(1, 63)), 2 ** random_numbers.randint(1, 64))
        case 2:
            return random_numbers.random() * 10.0 ** random_numbers.randint(-20, 20)
        case 3 | 4 | 5:
            return "".join(random_numbers.choices('abcäß€🎁"\\\n/ ', k=random_numbers.randrange(20)))
        case 6:
            return [_value(random_numbers, depth - 1) for _ in range(random_numbers.randrange(8))]
        case _:
            return {
                f"k{random_numbers.randrange(50)}": _value(random_numbers, depth - 1)
                for _ in range(random_numbers.randrange(8))
            }
