"""Answers a question from its passages and streams the cited answer, written by a language model or made of quotes."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from functions.core import errors, models, ports
from functions.core.answering import prompts
from functions.core.answering.extracts import choice
from functions.core.answering.model_writer import NO_LIMITS, ModelWriter, Prompt, TextDelta, TimeLimits
from functions.core.answering.tool_rounds import ToolRounds
from functions.core.citations.cite import cite_extracts, cite_sections, mark_answer
from functions.core.citations.sections import SECTION_BREAK, WrittenSection
from functions.core.retrieval import question_forms
from functions.core.retrieval.context import order_for_reading

_UNUSED = models.Usage()


@dataclass(frozen=True, slots=True)
class QuoteRules:
    """How an answer without a model is made.

    `compare` tells how near sentences are to the question. Passages with less than `least_evidence` are quoted as the
    nearest ones, not as an answer.
    """

    compare: choice.Compare | None = None
    least_evidence: float = 0.0


@dataclass(frozen=True, slots=True)
class AnswerReady:
    """The whole answer with checked citations and their marks; always the last item."""

    answer: models.Answer


def answer_question(
    question: str,
    hits: Sequence[models.SearchHit],
    *,
    lang: str,
    history: Sequence[models.Turn],
    chat_model: ports.ChatModel | None,
    tools: ports.ToolRunner | None = None,
    tool_rounds: int = 0,
    profile: models.PromptProfile = "full",
    limits: TimeLimits = NO_LIMITS,
    search_query: str | None = None,
    quote_rules: QuoteRules = QuoteRules(),
    passage_count: int = 0,
    preference: str = "",
) -> Generator[TextDelta | AnswerReady, None, None]:
    """Yields text as it is written, then one AnswerReady; the joined texts equal the sections joined by SECTION_BREAK.

    `hits` are the passages that the answer may cite, best first; the model may find more with `tools`, in at most
    `tool_rounds` rounds. If the model fails after some text, an AnswerReady of status `interrupted` with that text is
    yielded **before** the error is raised. If it fails earlier, the answer is made of quotations and says why; they
    are chosen for `search_query`, the complete question that a follow-up means. An answer that ends too early without
    an error is `interrupted` too. Closing the generator closes the model's stream. An answer that lists or counts
    something says how many of the `passage_count` passages in scope were read for it; 0: it is not known. A
    `preference` says in the user's words how a model shall write.
    """
    complete_question = search_query or question
    cover = partial(_cover, complete_question, lang, passage_count)
    quote = partial(_write_quotations, complete_question, lang, quote_rules)
    if chat_model is None or not hits:
        yield from cover(hits, quote(hits))
        return
    if profile == "compact":
        prompt, rounds = _ask_briefly(question, hits, lang, history, preference)
    else:
        rounds = ToolRounds(tools, tool_rounds if chat_model.takes_tools else 0, hits)
        prompt = _ask_fully(question, hits, lang, history, preference)
    writer = ModelWriter(chat_model, prompt, rounds, limits)
    yield from writer.run()
    reader, citable_hits = writer.reader, rounds.hits
    failure = None if writer.is_finished else writer.failure
    if reader.sections:
        status: models.MessageStatus = "complete" if writer.is_finished else "interrupted"
        written = reader.sections
        if profile == "compact":
            if prompts.denies_answer(SECTION_BREAK.join(section.text for section in written)):
                yield AnswerReady(_refuse(written, writer.usage))
                return
            written = tuple(_correct_numbers(section, citable_hits, question) for section in written)
        yield from cover(
            citable_hits, [AnswerReady(_cite_answer(question, written, citable_hits, status, writer.usage))]
        )
        if failure is not None:
            raise failure
    elif failure is not None:
        yield from _replace_model(failure, cover(hits, quote(hits, writer.usage)), lang)
    elif reader.says_no_answer:
        yield from _write_refusal(lang, writer.usage)
    else:
        yield from cover(citable_hits, quote(citable_hits, writer.usage))


def _ask_fully(
    question: str, hits: Sequence[models.SearchHit], lang: str, history: Sequence[models.Turn], preference: str
) -> Prompt:
    """The prompt for JSON sections, which may offer tools."""
    passages = order_for_reading(hits)
    return Prompt(
        partial(prompts.build_messages, question, passages, lang=lang, history=history, preference=preference),
        prompts.ANSWER_SCHEMA,
    )


def _ask_briefly(
    question: str, hits: Sequence[models.SearchHit], lang: str, history: Sequence[models.Turn], preference: str
) -> tuple[Prompt, ToolRounds]:
    """The prompt for text with numbers, over the best passages, without tools."""
    passages = order_for_reading(hits[: prompts.COMPACT_PASSAGES])
    build = partial(
        prompts.build_compact_messages, question, passages, lang=lang, history=history, preference=preference
    )
    labels = {str(number): hit.segment_id for number, hit in enumerate(passages, 1)}
    return Prompt(build, labels=labels), ToolRounds(None, 0, passages)


def _cite_answer(
    question: str,
    written: Sequence[WrittenSection],
    hits: Sequence[models.SearchHit],
    status: models.MessageStatus,
    usage: models.Usage,
) -> models.Answer:
    sections, sources = cite_sections(written, hits, question)
    return models.Answer(mark_answer(sections), sections, sources, status, "model", usage)


def _correct_numbers(section: WrittenSection, hits: Sequence[models.SearchHit], question: str) -> WrittenSection:
    """The section without its ids if no passage of theirs supports it and another does: small models miscount."""
    unnumbered = replace(section, segment_ids=())
    numbered_checks, found_checks = (
        {source.check for source in cite_sections([version], hits, question)[1]} for version in (section, unnumbered)
    )
    is_wrong = numbered_checks <= {"unverified"} and not found_checks <= {"unverified"}
    return unnumbered if is_wrong else section


def _cover(
    question: str,
    lang: str,
    passage_count: int,
    hits: Sequence[models.SearchHit],
    items: Iterable[TextDelta | AnswerReady],
) -> Iterator[TextDelta | AnswerReady]:
    """The items of an answer made from `hits`; if it lists or counts something, a remark says what it was read from."""
    for item in items:
        if isinstance(item, AnswerReady) and passage_count and question_forms.asks_for_all(question):
            answer = item.answer
            if answer.status == "complete" and any(source.support == "high" for source in answer.sources):
                remark = prompts.describe_reading(lang, len(hits), passage_count)
                yield TextDelta(SECTION_BREAK + remark)
                sections = (*answer.sections, models.CitedSection(remark, (), (), is_remark=True))
                item = AnswerReady(replace(answer, answer=answer.answer + SECTION_BREAK + remark, sections=sections))
        yield item


def _refuse(written: Sequence[WrittenSection], usage: models.Usage) -> models.Answer:
    """The refusal in the words of a model that says only that the passages do not contain the answer."""
    sections = tuple(models.CitedSection(section.text, (), ()) for section in written)
    return models.Answer(mark_answer(sections), sections, (), "guarded", "guard", usage)


def _write_refusal(lang: str, usage: models.Usage) -> Iterator[TextDelta | AnswerReady]:
    """The fixed text that replaces a model's NO_ANSWER."""
    text = prompts.NOT_ENOUGH.get(lang, prompts.NOT_ENOUGH["en"])
    section = models.CitedSection(text, (), ())
    yield TextDelta(text)
    yield AnswerReady(models.Answer(text, (section,), (), "guarded", "guard", usage))


def _replace_model(
    failure: errors.UnavailableError, quotations: Iterator[TextDelta | AnswerReady], lang: str
) -> Iterator[TextDelta | AnswerReady]:
    """The quotations below a section that says why the model did not write the answer."""
    *texts, ready = quotations
    assert isinstance(ready, AnswerReady)
    note = prompts.explain_failure(failure, lang, has_passages=bool(ready.answer.sources))
    yield TextDelta(note + SECTION_BREAK)
    yield from texts
    sections = (models.CitedSection(note, (), ()), *ready.answer.sections)
    answer = SECTION_BREAK.join([note, ready.answer.answer])
    yield AnswerReady(replace(ready.answer, answer=answer, sections=sections, degraded=failure.code))


def _write_quotations(
    question: str,
    lang: str,
    rules: QuoteRules,
    hits: Sequence[models.SearchHit],
    usage: models.Usage = _UNUSED,
) -> Iterator[TextDelta | AnswerReady]:
    """The extractive answer, also used if a model writes nothing; `usage` then counts the tokens of its empty reply."""
    quotations = choice.extract_answer(question, hits, lang=lang, compare=rules.compare)
    quoted, sources = cite_extracts(quotations, question, lang, least_evidence=rules.least_evidence)
    are_foreign = [choice.is_foreign(quotation.hit, lang) for quotation in quotations]
    is_answer = any(source.support == "high" for source in sources)
    notes = prompts.explain_quotations(lang, are_foreign, is_answer=is_answer)
    sections = (*(models.CitedSection(note, (), (), is_remark=True) for note in notes), *quoted)
    for at, section in enumerate(sections):
        yield TextDelta((SECTION_BREAK if at else "") + section.text)
    answer = mark_answer(sections)
    yield AnswerReady(models.Answer(answer, sections, sources, "complete", "extractive", usage))
