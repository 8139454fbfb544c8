"""The words that known embedding models want before questions and passages, from their model cards.

A model that was trained with such words finds less without them, and one that was trained without finds less with them.
Sources: https://huggingface.co/intfloat/multilingual-e5-small (e5),
https://huggingface.co/intfloat/multilingual-e5-large-instruct (instructions, questions only),
https://huggingface.co/Qwen/Qwen3-Embedding-0.6B (the same, without a space after "Query:"),
https://huggingface.co/BAAI/bge-large-en-v1.5 (bge in one language, questions only),
https://huggingface.co/nomic-ai/nomic-embed-text-v1.5, https://huggingface.co/google/embeddinggemma-300m,
https://huggingface.co/Snowflake/snowflake-arctic-embed-m-v1.5 and …-l-v2.0 (questions only),
https://huggingface.co/mixedbread-ai/mxbai-embed-large-v1 (questions only).
Models of OpenAI, Cohere, Voyage, Jina and GTE, bge-m3 and all-MiniLM-L6-v2 want none.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple


class Prefixes(NamedTuple):
    """What stands before each question and before each passage, with the space that follows it."""

    query: str = ""
    passage: str = ""


_TASK: Final = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"
_SENTENCE: Final = Prefixes("Represent this sentence for searching relevant passages: ")

# The first pattern that a name contains counts. Servers name a model in their own way: "intfloat/e5-base-v2",
# "multilingual-e5-small-q8_0", "bge-large:335m".
_KNOWN: Final = (
    (r"qwen3-embedding", Prefixes(_TASK)),
    (r"\be5\b.*instruct|\bgte-qwen.*instruct", Prefixes(f"{_TASK} ")),
    (r"\be5\b", Prefixes("query: ", "passage: ")),
    (r"\bbge-.*\bzh\b(?!.*noinstruct)", Prefixes("为这个句子生成表示以用于检索相关文章：")),
    (r"\bbge-(small|base|large)\b(?!.*\bzh\b)", _SENTENCE),
    (r"nomic-embed-text", Prefixes("search_query: ", "search_document: ")),
    (r"embeddinggemma", Prefixes("task: search result | query: ", "title: none | text: ")),
    (r"snowflake-arctic-embed(2|.*-v2)", Prefixes("query: ")),
    (r"snowflake-arctic-embed", _SENTENCE),
    (r"mxbai-embed-large", _SENTENCE),
)


def find_prefixes(model: str) -> Prefixes:
    """The prefixes of a model by the name under which its server knows it; none for an unknown one."""
    name = model.lower().replace("_", "-")
    return next((prefixes for pattern, prefixes in _KNOWN if re.search(pattern, name)), Prefixes())
