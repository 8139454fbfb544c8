"""The settings that an administrator can change while the service runs: types, bounds, defaults, descriptions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any

from functions.core import errors
from functions.core.text.storable import clean_text

MEGABYTE = 1024 * 1024


def _setting(
    default: Any,
    description: str,
    *,
    minimum: float | None = None,
    maximum: float | None = None,
    max_length: int = 0,
    choices: tuple[str, ...] = (),
) -> Any:
    bounds = {"minimum": minimum, "maximum": maximum, "max_length": max_length, "choices": choices}
    return field(default=default, metadata={"description": description, **bounds})


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings in force."""

    context_turns: int = _setting(
        3, "Number of earlier turns of the conversation that the model reads.", minimum=1, maximum=10
    )
    rewrite_follow_ups: bool = _setting(
        True,
        "Whether the language model rewrites a question that refers to earlier ones into a complete question before the"
        " search.",
    )
    translate_questions: bool = _setting(
        True,
        "Whether the language model translates an English or French question into the other language before the search"
        " if the documents searched hold that language.",
    )
    translate_documents: str = _setting(
        "off",
        "Whether passages are translated when a document is indexed, so that a question in the other language"
        " finds them by its words. It needs a translator (TRANSLATION_MODEL); citations stay in its language.",
        choices=("off", "en_to_fr", "fr_to_en", "both"),
    )
    rephrase_questions: bool = _setting(
        True,
        "Whether the language model writes a question in the words of a page, for a second search, if the first one"
        " passes the guard but is not sure of what it found.",
    )
    similarity_threshold: float = _setting(
        0.24,
        "Evidence (similarity, and the share of the question's words, in one passage) below which no model is asked,"
        " where 400 passages are searched; the bar is up to half lower among fewer, up to a third higher among more."
        " It is a tenth lower for a language that the embedding model does not speak, and 0.6 of itself with a language"
        " model, which can say itself that the passages do not contain the answer.",
        minimum=0.1,
        maximum=0.9,
    )
    guard_message: str = _setting(
        "",
        "The answer when no passage has enough evidence. If empty, a standard text in the question's language.",
        max_length=1000,
    )
    match_count: int = _setting(
        20,
        "Number of passages that a search, or an SQL function of a single arm, returns when its caller sets no limit.",
        minimum=5,
        maximum=100,
    )
    match_threshold: float = _setting(
        0.3,
        "Similarity below which the SQL function match_chunks drops a passage when its caller sets no threshold.",
        minimum=0,
        maximum=1,
    )
    fts_weight: float = _setting(1.0, "Weight of the full text ranking in the fusion.", minimum=0, maximum=10)
    vector_weight: float = _setting(1.0, "Weight of the vector ranking in the fusion.", minimum=0, maximum=10)
    blend_weight: float = _setting(10.0, "Weight of the blended score ranking in the fusion.", minimum=0, maximum=10)
    blend_alpha: float = _setting(0.6, "Share of the vector score in the blended score.", minimum=0, maximum=1)
    foreign_vector_weight: float = _setting(
        0.6,
        "Factor on every contribution of vectors when the embedding model does not speak the question's language.",
        minimum=0,
        maximum=1,
    )
    foreign_fts_weight: float = _setting(
        0.5,
        "Factor on what words count in a passage of another language than the question's, with which it shares little"
        " more than names.",
        minimum=0,
        maximum=1,
    )
    rrf_k: int = _setting(10, "Constant k of reciprocal rank fusion.", minimum=1, maximum=200)
    hybrid_top_k: int = _setting(24, "Number of passages taken from the fused ranking.", minimum=5, maximum=100)
    arm_count: int = _setting(
        50, "Number of passages that each ranking contributes to the fusion.", minimum=10, maximum=200
    )
    rerank_count: int = _setting(
        20,
        "Number of passages, from the top of the fused ranking, that the reranker, if there is one, reorders.",
        minimum=2,
        maximum=100,
    )
    context_passages: int = _setting(8, "Number of passages that the model reads.", minimum=1, maximum=50)
    passages_per_source: int = _setting(
        4,
        "Largest number of passages from one document or note that the model reads, where many are searched; among a"
        " few, one may have more.",
        minimum=1,
        maximum=50,
    )
    tool_rounds: int = _setting(
        2,
        "Rounds of further searches that a language model may make before it answers; 0 means none.",
        minimum=0,
        maximum=5,
    )
    prompt_profile: str = _setting(
        "auto",
        "How the language model is asked: in full; compactly, with four numbered passages, a few rules and no tools, as"
        " suits models of up to 8 billion parameters; or as its size suggests (auto), if its name or server tells it.",
        choices=("auto", "full", "compact"),
    )
    notebook_models: str = _setting(
        "",
        "Language models that the owner of a notebook may choose for its answers, separated by commas, as the server of"
        " the language model names them. If empty, none but the usual one.",
        max_length=1000,
    )
    chunk_tokens: int = _setting(
        240, "Target size of a passage in tokens of the embedding model.", minimum=64, maximum=2000
    )
    chunk_overlap: int = _setting(40, "Number of tokens that neighbouring passages share.", minimum=0, maximum=400)
    chunking_strategy: str = _setting(
        "fixed",
        "How passages are embedded: each by itself (fixed), or from token embeddings of the text around them (late).",
        choices=("fixed", "late"),
    )
    max_file_megabytes: int = _setting(100, "Largest file accepted, in megabytes.", minimum=1, maximum=5000)
    max_pages: int = _setting(2000, "Largest number of pages that a document may have.", minimum=1, maximum=20000)
    max_attempts: int = _setting(
        5, "Number of failed attempts after which the ingestion of a document is given up.", minimum=1, maximum=20
    )
    retention_days: int = _setting(
        30, "Number of days after its last message when a conversation is deleted.", minimum=1, maximum=3650
    )
    questions_per_day: int = _setting(
        2000, "Questions that one user may ask per day (UTC); 0 means no limit.", minimum=0, maximum=100_000
    )
    requests_per_minute: int = _setting(
        240,
        "Questions, searches, page images and tool calls together that one user may send per minute; 0 means no limit.",
        minimum=0,
        maximum=100_000,
    )
    key_requests_per_minute: int = _setting(
        600, "Requests that one API key may send per minute; 0 means no limit.", minimum=0, maximum=100_000
    )
    uploads_per_minute: int = _setting(
        1200,
        "Uploads, saved notes, new notebooks and repeated indexings together per user and minute; 0 means no limit.",
        minimum=0,
        maximum=100_000,
    )
    max_documents: int = _setting(
        50_000,
        "Documents, older versions included, notes and notebooks together that one user may have; 0 means no limit.",
        minimum=0,
        maximum=999_999,
    )
    max_library_megabytes: int = _setting(
        200_000,
        "Megabytes of files and notes that one user may store; 0 means no limit.",
        minimum=0,
        maximum=999_999,
    )
    price_input_per_million: float = _setting(
        0.0,
        "US dollars per million tokens that the language model reads; 0 means unknown, and no cost is shown.",
        minimum=0,
        maximum=10_000,
    )
    price_output_per_million: float = _setting(
        0.0,
        "US dollars per million tokens that the language model writes; 0 means unknown.",
        minimum=0,
        maximum=10_000,
    )
    price_translation_input_per_million: float = _setting(
        0.0,
        "US dollars per million tokens that the translator of documents reads; 0 means unknown.",
        minimum=0,
        maximum=10_000,
    )
    price_translation_output_per_million: float = _setting(
        0.0,
        "US dollars per million tokens that the translator of documents writes; 0 means unknown.",
        minimum=0,
        maximum=10_000,
    )

    @property
    def allowed_models(self) -> tuple[str, ...]:
        """The names in `notebook_models`."""
        return tuple(dict.fromkeys(filter(None, (name.strip() for name in self.notebook_models.split(",")))))

    @property
    def max_file_bytes(self) -> int:
        return self.max_file_megabytes * MEGABYTE


_FIELDS = {f.name: f for f in fields(Settings)}
_JSON_TYPES = {int: "integer", float: "number", str: "string", bool: "boolean"}


def describe_settings() -> list[dict[str, Any]]:
    """The key, type, bounds, default and help of each setting; web/schemas/settings_texts.py has their labels."""
    rows = []
    for name, spec in _FIELDS.items():
        assert spec.default is not MISSING
        bounds = {k: spec.metadata[k] for k in ("minimum", "maximum") if spec.metadata[k] is not None}
        if spec.metadata["max_length"]:
            bounds["max_length"] = spec.metadata["max_length"]
        if spec.metadata["choices"]:
            bounds["choices"] = list(spec.metadata["choices"])
        row = {"key": name, "type": _JSON_TYPES[type(spec.default)], **bounds}
        rows.append(row | {"default": spec.default, "description": spec.metadata["description"]})
    return rows


def load_settings(stored: Mapping[str, Any]) -> Settings:
    """The settings in force: `stored` values replace defaults, unless they are no longer valid."""
    return Settings(**{key: value for key, value in stored.items() if _find_fault(key, value) is None})


def validate_changes(changes: Mapping[str, Any]) -> None:
    """Checks all changes; raises InvalidSettingsError with `faults=[{key, message}]`, one for each invalid value."""
    faults = [
        {"key": clean_text(key), "message": fault}
        for key, value in changes.items()
        if (fault := _find_fault(key, value))
    ]
    if faults:
        raise errors.InvalidSettingsError(faults=faults)


def _find_fault(key: str, value: Any) -> str | None:
    spec = _FIELDS.get(key)
    if spec is None:
        return "There is no such setting."
    if isinstance(spec.default, bool):
        return None if isinstance(value, bool) else "This must be true or false."
    if isinstance(spec.default, str):
        return _find_text_fault(spec.metadata, value)
    # bool is a subclass of int. Python's JSON parser accepts NaN and infinity; both fail the comparison below.
    allowed = int if isinstance(spec.default, int) else (int, float)
    if not isinstance(value, allowed) or isinstance(value, bool):
        return "This must be a whole number." if allowed is int else "This must be a number."
    minimum, maximum = spec.metadata["minimum"], spec.metadata["maximum"]
    return None if minimum <= value <= maximum else f"This must be between {minimum:g} and {maximum:g}."


def _find_text_fault(bounds: Mapping[str, Any], value: Any) -> str | None:
    if not isinstance(value, str):
        return "This must be text."
    if clean_text(value) != value:
        return "This contains a character that cannot be stored."
    if bounds["choices"]:
        return None if value in bounds["choices"] else f"This must be one of {', '.join(bounds['choices'])}."
    limit = bounds["max_length"]
    return f"This must be at most {limit} characters." if len(value) > limit else None
