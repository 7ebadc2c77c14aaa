"""Tags are read from comments of two forms, and hostile comments have none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.ddl.digests.comment_tags import LONGEST_TAG, MOST_TAGS, comment_tags


@pytest.mark.parametrize(
    ("comment", "tags"),
    [
        (
            "/*application:Shop,controller:orders,action:pay*/",
            {"application": "Shop", "controller": "orders", "action": "pay"},
        ),
        ("/* line:/app/x.rb:10:in `foo' */", {"line": "/app/x.rb:10:in `foo'"}),
        ("# service:worker\n", {"service": "worker"}),
        ("-- app:a", {"app": "a"}),
        (
            "/*action='%2Fparam*d',controller='index',framework='spring',traceparent='00-5bd6-c532-01'*/",
            {"action": "/param*d", "controller": "index", "framework": "spring", "traceparent": "00-5bd6-c532-01"},
        ),
        ("/* a='b\\'c' , d='' */", {"a": "b'c", "d": ""}),
        ("/*a='%FF%41%0',b='%3Cscript%3E'*/", {"a": "\ufffdA%0", "b": "<script>"}),
        ("/*a='1',a='2'*/", {"a": "1"}),
        ("/* note: alice */", {}),
        ("/* drop table t; */", {}),
        ("/*a='1',b*/", {}),
        ("/*a='*/", {}),
        ("/*<b>='x'*/", {}),
        ("/**/", {}),
        ("/*", {}),
        ("--", {}),
    ],
)
def test_tags_of_a_comment(comment: str, tags: dict[str, str]) -> None:
    assert comment_tags([comment]) == tags


def test_tags_are_bounded() -> None:
    many = comment_tags(["/*" + ",".join(f"k{number}:v" for number in range(5000)) + "*/"])
    assert len(many) == MOST_TAGS
    (value,) = comment_tags([f"/*a='{'x' * 100_000}'*/"]).values()
    assert len(value) == LONGEST_TAG
    assert comment_tags(["/*a:b*/", "/* text */", "/*a:c,d:e*/"]) == {"a": "b", "d": "e"}


@given(st.text(alphabet="ab'\\=:,%2F/* \n\0é", max_size=60))
def test_any_comment_is_read(content: str) -> None:
    tags = comment_tags([f"/*{content}*/", f"#{content}", f"--{content}"])
    assert all(isinstance(value, str) for value in tags.values())
