"""The pages are plain to read: few numbers in the prose, short sentences."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text("utf-8")
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
}
# Numbers in 100 words, and the share of sentences of at most 32 words.
MOST_NUMBERS = {"README.md": 5.0}
MOST_NUMBERS_ELSEWHERE = 8.0
LONGEST_SENTENCE = 32
LEAST_SHORT = 0.9

NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?")


def sentences_of(text):
    """The sentences of a page, without code, tables and the figures of links.

    A heading is no sentence. An item of a list ends one. What is between the
    markers of a table is its notes.
    """
    text = re.sub(r"<!-- (.+?) -->.*?<!-- end \1 -->", "", text, flags=re.S)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.S)
    text = re.sub(r"^```.*?^```$", "", text, flags=re.S | re.M)
    text = re.sub(r"^(\||#+ ).*$", "", text, flags=re.M)
    text = re.sub(r"!\[[^]]*\]\([^)]*\)", "", text)
    text = re.sub(r"`[^`]+`", "code", text)
    text = re.sub(
        r"\[([^]]*)\]\([^)]*\)", lambda link: NUMBER.sub("N", link[1]), text
    )
    text = text.replace("e.g.", "eg").replace("i.e.", "ie")
    blocks = re.split(r"\n\s*\n|\n\s*(?:[-*]|\d+\.) ", f"\n{text}")
    ends = re.compile(r"(?<=[.!?])[*)\"]*\s+(?=[\"*(\[_]*[A-Z0-9αβ]|code)")
    found = [ends.split(" ".join(block.split())) for block in blocks]
    return [s for block in found for s in block if words_of(s)]


def words_of(text):
    return [word for word in text.split() if re.search(r"\w", word)]


def measured(text):
    """Numbers in 100 words of prose, and the share of short sentences."""
    sentences = sentences_of(text)
    lengths = [len(words_of(sentence)) for sentence in sentences]
    numbers = len(NUMBER.findall(" ".join(sentences)))
    short = sum(length <= LONGEST_SENTENCE for length in lengths)
    return 100 * numbers / sum(lengths), short / len(lengths)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_few_numbers_and_short_sentences(name):
    numbers, short = measured(PAGES[name])
    most = MOST_NUMBERS.get(name, MOST_NUMBERS_ELSEWHERE)
    assert numbers <= most, f"{numbers:.1f} numbers in 100 words"
    assert short >= LEAST_SHORT, f"{short:.0%} short sentences"


LONG = " ".join(["word"] * 33)


@pytest.mark.parametrize(
    ("text", "numbers", "short"),
    [
        ("Ten words are here, and of them 1 is one.", 10, 1),
        ("From 0 to 1,000 in 2.5 s, seeds 0-2.", 500 / 9, 1),
        ("# 1 heading\n\nNo number.\n\n| 1 | 2 |\n| --- | --- |", 0, 1),
        ("See `x[0]` and [1.5 %](a/2.md).\n\n```text\n3 4\n```\n", 0, 1),
        ("![4 edges](5.png) None.\n<!-- 6 -->\n\n- An item", 0, 1),
        ("None.\n<!-- t -->\n- 7 seeds\n<!-- end t -->\n", 0, 1),
        (f"{LONG}. Short. `code` is short. So is e.g. this.", 0, 0.75),
        (f"- {LONG}\n- Short\n1. Also short", 0, 2 / 3),
    ],
)
def test_what_is_measured(text, numbers, short):
    assert measured(text) == (pytest.approx(numbers), pytest.approx(short))
