"""The file with the masks: what it selects, and its mistakes."""

import pickle
from pathlib import Path

import pytest

from ingest.errors import UsageError
from ingest.masking.rules import Masks, masks_file, read_masks

KEY = "0123456789abcdef0123456789abcdef"
TAGS = "tags: {contact: hash, card: {method: partial, keep_first: 2}, gone: drop, empty: null}\n"


def masks_of(tmp_path: Path, text: str, source: str = "shop") -> Masks | None:
    """Return the masks of a source in a file with a text."""
    path = tmp_path / "masks.yml"
    path.write_text(text)
    return read_masks(path, tmp_path / "home", source)


def methods(masks: Masks, table: str, *names: str) -> dict[str, str]:
    """Return the method of each masked column of a table of schema `shop`."""
    return {one.name: one.mask.method for one in masks.columns_of("shop", table, names)}


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    """The key of the hashes."""
    monkeypatch.setenv("BINLOOM_MASK_KEY", KEY)


def test_the_first_rule_that_matches_counts_and_case_does_not(tmp_path: Path) -> None:
    rules = (
        "rules: [{columns: 'Shop.*.E?MAIL', tag: gone}, {columns: ['*.*.*mail*', 'shop.cards.number'], tag: card}]\n"
    )
    masks = masks_of(tmp_path, TAGS + rules)
    assert masks is not None
    assert methods(masks, "customers", "id", "e-mail", "email", "Mailing") == {
        "e-mail": "drop",
        "email": "partial",
        "Mailing": "partial",
    }
    assert methods(masks, "cards", "number", "numbers") == {"number": "partial"}
    assert masks.concerns("other", "any")


def test_rules_of_other_sources_do_not_count(tmp_path: Path) -> None:
    rules = "rules: [{columns: shop.t.c, tag: contact, source: 'shop-*'}]\n"
    assert masks_of(tmp_path, TAGS + rules, "shop-eu") is not None
    assert masks_of(tmp_path, TAGS + rules, "shop") is None
    assert masks_of(tmp_path, TAGS + rules, "Shop-eu") is None, "names of sources have a case"


def test_a_file_without_rules_masks_nothing(tmp_path: Path) -> None:
    assert masks_of(tmp_path, TAGS + "rules: []\n") is None


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("tags: [", r"is not YAML in line"),
        ("- a", "the file does not have settings"),
        (TAGS, "rules is not a list"),
        ("rules: []", "tags is not a list of names"),
        (TAGS + "rules: []\nrule: []\n", r"unknown setting rule\. There is rules"),
        ("tags: {a: hush}\nrules: []\n", r"tag a has the unknown method hush\. There is hash"),
        ("tags: {a: {method: hash, keep_last: 4}}\nrules: []\n", "keep_last, which only the method partial uses"),
        ("tags: {a: {method: partial, keep_last: -1}}\nrules: []\n", "keep_last of tag a is not a number"),
        ("tags: {a: {method: partial, keep: 1}}\nrules: []\n", r"unknown setting keep"),
        (TAGS + "rules: [{columns: a.b.c, tag: contakt}]\n", r"rule 1 has the unknown tag contakt\. There is contact"),
        (TAGS + "rules: [{columns: a.b.c}]\n", "rule 1 has no tag"),
        (TAGS + "rules: [{columns: b.c, tag: gone}]\n", r"'b\.c' in rule 1 is not SCHEMA\.TABLE\.COLUMN"),
        (TAGS + "rules: [{columns: [], tag: gone}]\n", "columns of rule 1 is neither"),
        (TAGS + "rules: [{columns: a.b.c, tag: gone, source: 7}]\n", "source of rule 1 is not the name"),
        (TAGS + "key_file: k\nkey_variable: K\nrules: [{columns: a.b.c, tag: contact}]\n", "both key_file and"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, finding: str) -> None:
    with pytest.raises(UsageError, match=finding) as found:
        masks_of(tmp_path, text)
    assert found.value.exit_code == 2


HASHED = TAGS + "rules: [{columns: a.b.c, tag: contact}]\n"


def test_the_key_is_neither_missing_nor_short_nor_in_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BINLOOM_MASK_KEY", "short")
    with pytest.raises(UsageError, match="only 5 bytes"):
        masks_of(tmp_path, HASHED)
    monkeypatch.delenv("BINLOOM_MASK_KEY")
    with pytest.raises(UsageError, match="the variable BINLOOM_MASK_KEY with their key is empty"):
        masks_of(tmp_path, HASHED)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "mask.key").write_text(KEY)
    (tmp_path / "link.key").symlink_to(tmp_path / "home" / "mask.key")
    for name in ("home/mask.key", "link.key"):
        with pytest.raises(UsageError, match="is in the home"):
            masks_of(tmp_path, f"key_file: {name}\n{HASHED}")
    with pytest.raises(UsageError, match="cannot be read"):
        masks_of(tmp_path, f"key_file: nowhere\n{HASHED}")
    (tmp_path / "mask.key").write_text(f"{KEY}\n")
    masks = masks_of(tmp_path, f"key_file: mask.key\n{HASHED}")
    assert masks is not None and masks.key == KEY.encode()
    # Tasks of Spark get it, and nothing prints it.
    assert pickle.loads(pickle.dumps(masks)) == masks
    assert KEY not in repr(masks)


def test_no_key_is_needed_without_hashes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BINLOOM_MASK_KEY")
    assert masks_of(tmp_path, TAGS + "rules: [{columns: a.b.c, tag: empty}]\n") is not None


def test_the_option_goes_before_the_variable_before_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert masks_file(None, tmp_path) is None
    (tmp_path / "masks.yml").touch()
    assert masks_file(None, tmp_path) == tmp_path / "masks.yml"
    monkeypatch.setenv("BINLOOM_MASKS", "/elsewhere.yml")
    assert masks_file(None, tmp_path) == Path("/elsewhere.yml")
    assert masks_file(Path("given.yml"), tmp_path) == Path("given.yml")
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        read_masks(Path("/elsewhere.yml"), tmp_path, "shop")
