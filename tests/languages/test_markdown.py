"""What the Markdown query file finds."""

from tests.languages.reading import read

SOURCE = """
---
title: x
---
Before any heading.

# Guide

Intro.

## Install `now`

```sh
# not a heading
```

### From source

Steps.

## Use

Text.

# Other
"""


def test_sections_are_qualified_by_the_sections_around_them():
    """Deeper headings nest, and a line of a code block is no heading."""
    parsed = read("markdown", SOURCE)
    assert parsed.definitions == {
        ("Guide", "section", 6),
        ("Guide.Install `now`", "section", 10),
        ("Guide.Install `now`.From source", "section", 16),
        ("Guide.Use", "section", 20),
        ("Other", "section", 24),
    }
    assert parsed.references == set()


def test_a_section_chunk_holds_its_own_text_not_its_subsections():
    """Text before the first heading is in no section."""
    assert [chunk for chunk in read("markdown", SOURCE).chunks if chunk[0] < 20] == [
        (1, 4, "toplevel", ""),
        (6, 8, "section", "Guide"),
        (10, 14, "section", "Guide.Install `now`"),
        (16, 18, "section", "Guide.Install `now`.From source"),
    ]


def test_setext_headings_are_sections():
    """An underlined heading that opens the text holds the later ones."""
    source = """
    Title
    =====

    Intro.

    Part
    ----

    Text.
    """
    assert read("markdown", source).definitions == {
        ("Title", "section", 1),
        ("Title.Part", "section", 6),
    }
    assert read("markdown", "Badge.\n\nTitle\n=====\n").definitions == {("Title", "section", 3)}
