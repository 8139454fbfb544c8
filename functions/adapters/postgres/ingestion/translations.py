"""The queue and the table of the translations of passages; every statement runs as the worker role."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from functions.adapters.postgres.connection import Connection, Database
from functions.core import errors, models

if TYPE_CHECKING:  # at run time this would import all of ingestion, which only workers need
    from functions.core.ingestion import translation
    from functions.core.ports import Matrix

_UNEMBEDDED = """
select c.id as chunk_id, c.lang, c.text, coalesce(c.search_prefix, '') as search_prefix, t.lang as target,
    t.text as translation
from rag.chunk_translations t
join rag.chunks c on c.id = - t.id
where t.generation = %s and t.text is not null
    and not exists (select from rag.chunk_vectors v where v.chunk_id = t.id)
order by c.chunk_index
"""

_SERVER = """
select d.embedding_server_id::text as server_id from rag.documents d where d.generation = %(generation)s
union all
select n.embedding_server_id::text from rag.notes n where n.generation = %(generation)s
"""


class TranslationStore:
    """Implements core.ingestion.translation.TranslationStore with the SQL functions of the same names."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def claim_translation(
        self, generation: int | None, langs: Sequence[str], lease_seconds: int
    ) -> translation.TranslationJob | None:
        from functions.core.ingestion import translation

        with self._database.as_worker() as connection:
            row = connection.execute(
                "select * from rag.claim_translation(%s, %s, %s)", (generation, list(langs), lease_seconds)
            ).fetchone()
            if row is None:
                return None
            # A statement of its own: the one that claims may have begun before the generation was finished.
            source = connection.execute(_SERVER, {"generation": row["generation"]}).fetchone()
        return translation.TranslationJob(
            row["generation"],
            str(row["owner_id"]),
            str(row["lease_token"]),
            row["attempts"],
            tuple(row["langs"]),
            source["server_id"] if source else None,
        )

    def list_untranslated(self, job: translation.TranslationJob, count: int) -> list[translation.StoredPassage]:
        from functions.core.ingestion import translation

        with self._database.as_worker() as connection:
            rows = connection.execute(
                "select c.id as chunk_id, c.lang, c.text, coalesce(c.search_prefix, '') as search_prefix"
                " from rag.chunks c where c.generation = %s and c.lang = any (%s)"
                " and not exists (select from rag.chunk_translations t where t.id = - c.id)"
                " order by c.chunk_index limit %s",
                (job.generation, list(job.langs), count),
            ).fetchall()
        return [translation.StoredPassage(**row) for row in rows]

    def list_unembedded(self, job: translation.TranslationJob) -> list[translation.Translation]:
        from functions.core.ingestion import translation

        with self._database.as_worker() as connection:
            rows = connection.execute(_UNEMBEDDED, (job.generation,)).fetchall()
        return [
            translation.Translation(
                translation.StoredPassage(row["chunk_id"], row["lang"], row["text"], row["search_prefix"]),
                row["target"],
                row["translation"],
            )
            for row in rows
        ]

    def recall_translations(self, owner_id: str, text_hashes: Collection[str]) -> dict[tuple[str, str], str]:
        return recall_translations(self._database, owner_id, text_hashes)

    def save_translations(
        self,
        job: translation.TranslationJob,
        translations: Sequence[translation.Translation],
        lease_seconds: int,
        usage: models.Usage,
        cost: float,
    ) -> None:
        """Saves texts and words in one transaction; raises LeaseLostError."""
        from functions.core.ingestion import translation

        with self._database.as_worker() as connection:
            _hold(connection, job, lease_seconds, usage, cost)
            connection.execute(
                "select rag.add_translations(%s, %s, %s, %s)",
                (
                    [one.passage.chunk_id for one in translations],
                    [one.lang for one in translations],
                    [translation.hash_text(one.passage.text) for one in translations],
                    [one.text for one in translations],
                ),
            )

    def save_vectors(
        self, job: translation.TranslationJob, chunk_ids: Sequence[int], vectors: Sequence[Matrix], lease_seconds: int
    ) -> None:
        """Saves the vectors of the translations of chunks; raises LeaseLostError."""
        with self._database.as_worker() as connection:
            _hold(connection, job, lease_seconds, models.Usage(), 0.0)
            connection.cursor().executemany(
                "insert into rag.chunk_vectors (chunk_id, generation, owner_id, server_id, embedding)"
                " values (%s, %s, %s, %s, %s::real[]::extensions.halfvec) on conflict (chunk_id) do nothing",
                [
                    (-chunk_id, job.generation, job.owner_id, job.server_id, [float(value) for value in vector])
                    for chunk_id, vector in zip(chunk_ids, vectors, strict=True)
                ],
            )

    def end_translation(
        self,
        job: translation.TranslationJob,
        error: errors.IbidError | None = None,
        wait_seconds: float | None = None,
    ) -> str | None:
        code, message = (None, None) if error is None else (error.code, error.message)
        with self._database.as_worker() as connection:
            row = connection.execute(
                "select rag.end_translation(%s, %s, %s, %s, %s) as status",
                (job.generation, job.lease_token, code, message, wait_seconds),
            ).fetchone()
        return None if row is None else row["status"]

    def queue_translations(self, langs: Sequence[str], count: int = 1000) -> list[int]:
        """Queues what shall be translated and is not; returns the generations that are due."""
        with self._database.as_worker() as connection:
            rows = connection.execute(
                "select rag.queue_translations(%s, %s) as generation", (list(langs), count)
            ).fetchall()
        return [row["generation"] for row in rows]


def recall_translations(database: Database, owner_id: str, text_hashes: Collection[str]) -> dict[tuple[str, str], str]:
    """What the owner's passages of these texts were translated into, by hash and language."""
    with database.as_worker() as connection:
        rows = connection.execute(
            "select distinct on (t.text_hash, t.lang) t.text_hash, t.lang, t.text from rag.chunk_translations t"
            " where t.owner_id = %s and t.text_hash = any (%s) and t.text is not null order by 1, 2, t.id",
            (owner_id, list(text_hashes)),
        ).fetchall()
    return {(row["text_hash"], row["lang"]): row["text"] for row in rows}


def _hold(
    connection: Connection,
    job: translation.TranslationJob,
    lease_seconds: int,
    usage: models.Usage,
    cost: float,
) -> None:
    row: dict[str, Any] | None = connection.execute(
        "select rag.extend_translation(%s, %s, %s, %s, %s, %s, %s) as held",
        (
            job.generation,
            job.lease_token,
            lease_seconds,
            usage.model,
            max(usage.prompt_tokens or 0, 0),
            max(usage.completion_tokens or 0, 0),
            cost,
        ),
    ).fetchone()
    if row is None or not row["held"]:
        raise errors.LeaseLostError(job_id=job.generation)
