"""What the Python query file finds."""

from tests.languages.reading import read

SOURCE = '''
import os.path
from .models import User as Account

LIMIT = 3


@cached
class Repo(Base, metaclass=Meta):
    """Holds users."""

    table = "users"

    def __init__(self, db):
        self.db = db

    @property
    def size(self):
        return len(self.db.rows)

    def touch(self):
        self.count += 1
        return helper(self.db, key=LIMIT)


async def helper(db, key):
    def inner():
        return db
    return inner
'''


def test_definitions_are_found_with_their_qualified_names():
    """Decorated, nested and asynchronous definitions all count, fields too."""
    assert read("python", SOURCE).definitions == {
        ("LIMIT", "variable", 4),
        ("Repo", "class", 8),
        ("Repo.table", "field", 11),
        ("Repo.__init__", "method", 13),
        ("Repo.__init__.db", "field", 14),
        ("Repo.size", "method", 17),
        ("Repo.touch", "method", 20),
        ("helper", "function", 25),
        ("helper.inner", "function", 26),
    }


def test_calls_attribute_reads_writes_and_imports_are_told_apart():
    """A reader of an attribute is what plain tags miss."""
    parsed = read("python", SOURCE)
    assert parsed.uses("rows") == {("read", 18)}
    assert parsed.uses("count") == {("write", 21)}
    assert parsed.uses("helper") == {("call", 22)}
    assert parsed.uses("LIMIT") == {("read", 22)}
    assert parsed.uses("User") == {("import", 2)}
    assert parsed.uses("Base") == {("type", 8)}


def test_a_class_chunk_holds_header_docstring_and_fields_not_the_methods():
    """Methods are chunks of their own, with their decorators."""
    chunks = read("python", SOURCE).chunks
    assert (7, 11, "class", "Repo") in chunks
    assert (16, 18, "method", "Repo.size") in chunks
    assert [chunk for chunk in chunks if chunk[3] == "helper"] == [(25, 28, "function", "helper")]
