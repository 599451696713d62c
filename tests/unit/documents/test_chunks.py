"""Where documents are cut."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayapp.documents.records import Block, BlockKind
from rayapp.documents.rules.chunks import LONGEST, SECTION_CHARS, SHORTEST, TARGET, Chunk, chunks_of
from rayapp.inference.rules import estimate_tokens
from tests.support.examples import examples

HEBREW = "הילדים שיחקו בחצר הבית הגדול ליד הנהר. "
ENGLISH = "The children played in the yard of the house by the river. "
ARABIC = "هل لعب الأطفال في ساحة البيت الكبير؟ "
CHINESE = "孩子们在河边的大房子的院子里玩耍。"
SENTENCES = st.sampled_from((HEBREW, ENGLISH, ARABIC, CHINESE))


def paragraph(sentence: str, times: int, page: int | None = None) -> Block:
    return Block(BlockKind.PARAGRAPH, (sentence * times).strip(), page=page)


def heading(text: str, level: int = 1) -> Block:
    return Block(BlockKind.HEADING, text, level)


BLOCKS = st.lists(
    st.one_of(
        st.builds(heading, st.sampled_from(("Start", "סוף", "Part 2")), st.integers(1, 3)),
        st.builds(paragraph, SENTENCES, st.integers(1, 90), st.integers(1, 9)),
        st.builds(Block, st.just(BlockKind.LIST_ITEM), SENTENCES.map(str.strip), st.just(1)),
        st.integers(1, 40).map(
            lambda n: Block(BlockKind.CODE, "def f(x):\n\n    return x\n" * n + "end")
        ),
        st.integers(1, 20).map(
            lambda n: Block(BlockKind.TABLE_ROW, "Name: דנה; Sum: 5" + "; Note: long text" * n)
        ),
        st.text("אב cd.\n", min_size=1, max_size=4_000)
        .filter(lambda text: bool(text.strip()))
        .map(lambda text: Block(BlockKind.PARAGRAPH, text)),
    ),
    max_size=14,
)


def own(chunk: Chunk) -> str:
    return chunk.text[chunk.overlap :]


def squeezed(text: str) -> str:
    return "".join(text.split())


@given(BLOCKS)
@settings(max_examples=examples(150), deadline=None)
def test_nothing_is_lost_doubled_or_moved(blocks: list[Block]) -> None:
    chunks = chunks_of(blocks)
    assert squeezed("".join(map(own, chunks))) == squeezed("".join(one.text for one in blocks))
    assert [one.index for one in chunks] == list(range(len(chunks)))
    assert sorted(one.position for one in chunks) == [one.position for one in chunks]
    assert all(0 <= one.position <= 1 for one in chunks)


@given(BLOCKS)
@settings(max_examples=examples(150), deadline=None)
def test_limits_are_kept_and_what_is_whole_stays_whole(blocks: list[Block]) -> None:
    chunks = chunks_of(blocks)
    for before, chunk in zip([None, *chunks], chunks, strict=False):
        assert chunk.text.strip()
        assert chunk.tokens == estimate_tokens(chunk.text) <= LONGEST
        if chunk.overlap:
            assert before is not None
            assert squeezed(before.text).endswith(squeezed(chunk.text[: chunk.overlap]))
    for block in blocks:
        whole = block.kind in (BlockKind.CODE, BlockKind.TABLE_ROW)
        if whole and estimate_tokens(block.text) <= LONGEST:
            assert any(block.text in chunk.text for chunk in chunks)


def test_no_text_has_no_chunk() -> None:
    assert chunks_of([]) == []


def test_a_long_section_is_cut_into_about_equal_parts_that_overlap_by_sentences() -> None:
    for sentence in (HEBREW, ENGLISH):
        chunks = chunks_of([heading("One"), paragraph(sentence, 120, page=3)])
        assert len(chunks) >= 3
        assert all(SHORTEST <= one.tokens <= 1.5 * TARGET for one in chunks)
        for one in chunks[1:]:
            assert one.overlap > 0
            assert one.text.startswith(sentence.split()[0])
            assert own(one).strip().startswith(sentence.split()[0])
        assert {one.section for one in chunks} == {("One",)}
        assert {one.pages for one in chunks} == {(3, 3)}


def test_sentences_of_other_scripts_stay_whole() -> None:
    for sentence, ends in ((ARABIC, "؟"), (CHINESE, "。")):
        chunks = chunks_of([paragraph(sentence, 300)])
        assert len(chunks) > 1
        assert all(one.text.rstrip().endswith(ends) for one in chunks)


def test_the_path_of_headings_is_kept() -> None:
    long = paragraph(ENGLISH, 25)
    blocks = [heading("A"), long, heading("B", 2), long, heading("C", 3), long]
    chunks = chunks_of([*blocks, heading("D", 2), long])
    sections = [one.section for one in chunks]
    assert sections == [("A",), ("A", "B"), ("A", "B", "C"), ("A", "D")]
    assert [one.headings for one in chunks] == sections
    assert chunks[1].text.startswith("B\n\nThe children")


def test_chunks_repeat_no_more_of_a_heading_than_its_beginning() -> None:
    chunks = chunks_of([heading(ENGLISH * 300), paragraph(ENGLISH, 90)])
    assert len(chunks) > 5
    assert {len(title) for one in chunks for title in one.section} == {SECTION_CHARS}
    assert all(one.section[0].startswith(ENGLISH) for one in chunks)
    assert squeezed("".join(map(own, chunks))) == squeezed(ENGLISH * 390)


def test_small_sections_are_one_chunk() -> None:
    blocks = [one for n in range(8) for one in (heading(f"{n}"), paragraph(ENGLISH, 2, n + 1))]
    (chunk,) = chunks_of(blocks)
    assert chunk.section == ("0",)
    assert chunk.headings == tuple("01234567")
    assert chunk.pages == (1, 8)


def test_a_heading_without_words_of_its_own_is_found() -> None:
    (chunk,) = chunks_of([heading("Part I"), heading("Chapter 1"), paragraph(ENGLISH, 2)])
    assert chunk.section == ("Chapter 1",)
    assert chunk.headings == ("Chapter 1", "Part I")


def test_code_is_marked_and_never_repeated() -> None:
    code = Block(BlockKind.CODE, "x = 1\n\ny = 2\n" * 60)
    chunks = chunks_of([paragraph(ENGLISH, 20), code, paragraph(ENGLISH, 20)])
    assert [one.has_code for one in chunks].count(True) == 1
    assert sum(one.text.count("x = 1") for one in chunks) == 60


@pytest.mark.parametrize("text", ["琼扡敬㰾牴㰾摴㰾慴汢㹥", "> > d>", "- ", "אבגדה"])
def test_a_text_without_sentences_takes_no_longer_than_others(text: str) -> None:
    """A file that was made bad is one block of two million such characters."""
    begun = time.process_time()
    found = chunks_of([Block(BlockKind.PARAGRAPH, text * (300_000 // len(text)))])
    assert time.process_time() - begun < 5.0
    assert all(chunk.tokens <= LONGEST for chunk in found)
