"""How a page groups and names the settings, in English and French; core/settings.py has their help in English."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

Language = Literal["en", "fr"]


@dataclass(frozen=True, slots=True)
class Group:
    """A part of the settings page, with the settings that it shows in their order."""

    key: str
    en: str
    fr: str
    settings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Text:
    """The labels of a setting, and its help in French."""

    en: str
    fr: str
    help_fr: str


GROUPS: Final = (
    Group(
        "answers",
        "Answers",
        "Réponses",
        (
            "guard_message",
            "context_turns",
            "rewrite_follow_ups",
            "translate_questions",
            "rephrase_questions",
            "similarity_threshold",
            "context_passages",
            "passages_per_source",
            "tool_rounds",
            "prompt_profile",
            "notebook_models",
        ),
    ),
    Group(
        "search",
        "Search",
        "Recherche",
        (
            "match_count",
            "hybrid_top_k",
            "rerank_count",
            "arm_count",
            "fts_weight",
            "vector_weight",
            "blend_weight",
            "blend_alpha",
            "rrf_k",
            "foreign_vector_weight",
            "foreign_fts_weight",
            "match_threshold",
        ),
    ),
    Group(
        "ingestion",
        "Documents",
        "Documents",
        (
            "max_file_megabytes",
            "max_pages",
            "chunk_tokens",
            "chunk_overlap",
            "chunking_strategy",
            "translate_documents",
            "max_attempts",
        ),
    ),
    Group(
        "limits",
        "Limits",
        "Limites",
        (
            "questions_per_day",
            "requests_per_minute",
            "key_requests_per_minute",
            "uploads_per_minute",
            "max_documents",
            "max_library_megabytes",
            "retention_days",
        ),
    ),
    Group(
        "costs",
        "Usage",
        "Utilisation",
        (
            "price_input_per_million",
            "price_output_per_million",
            "price_translation_input_per_million",
            "price_translation_output_per_million",
        ),
    ),
)

EXPERT_SETTINGS: Final = frozenset(
    {
        "similarity_threshold",
        "context_passages",
        "passages_per_source",
        "tool_rounds",
        "prompt_profile",
        "hybrid_top_k",
        "rerank_count",
        "arm_count",
        "fts_weight",
        "vector_weight",
        "blend_weight",
        "blend_alpha",
        "rrf_k",
        "foreign_vector_weight",
        "foreign_fts_weight",
        "match_threshold",
        "chunk_tokens",
        "chunk_overlap",
        "chunking_strategy",
        "max_attempts",
    }
)
"""What a page folds away: their defaults were measured, and a change needs another measurement."""

TEXTS: Final[Mapping[str, Text]] = {
    "similarity_threshold": Text(
        "Evidence needed",
        "Preuve requise",
        "Preuve (similarité, et part des mots de la question, dans un même passage) en dessous de laquelle aucun modèle"
        " n’est interrogé, lorsque 400 passages sont cherchés ; le seuil est jusqu’à deux fois plus bas parmi un plus"
        " petit nombre et jusqu’à un tiers plus haut parmi un plus grand. Il est un dixième plus bas pour une langue"
        " que le modèle d’embedding ne parle pas, et vaut 0,6 fois lui-même avec un modèle de langage, qui peut dire"
        " lui-même que les passages ne contiennent pas la réponse.",
    ),
    "guard_message": Text(
        "Answer without evidence",
        "Réponse sans preuve",
        "La réponse donnée quand aucun passage n’apporte assez de preuves. Si elle est vide, un texte standard dans la"
        " langue de la question.",
    ),
    "context_turns": Text(
        "Earlier turns",
        "Tours précédents",
        "Nombre de tours précédents de la conversation que le modèle lit.",
    ),
    "context_passages": Text("Passages read", "Passages lus", "Nombre de passages que le modèle lit."),
    "passages_per_source": Text(
        "Passages per source",
        "Passages par source",
        "Plus grand nombre de passages d’un même document ou d’une même note que le modèle lit, quand beaucoup sont"
        " cherchés ; parmi quelques-uns, l’un d’eux peut en avoir davantage.",
    ),
    "rewrite_follow_ups": Text(
        "Complete follow-up questions",
        "Compléter les questions de suivi",
        "Si le modèle de langage récrit une question qui renvoie à d’autres en une question complète avant la"
        " recherche.",
    ),
    "translate_questions": Text(
        "Translate questions",
        "Traduire les questions",
        "Si le modèle de langage traduit une question anglaise ou française dans l’autre langue avant la recherche,"
        " quand les documents cherchés contiennent cette langue.",
    ),
    "rephrase_questions": Text(
        "Rephrase questions",
        "Reformuler les questions",
        "Si le modèle de langage écrit la question avec les mots d’une page, pour une seconde recherche, quand la"
        " première a trouvé assez de preuves mais n’en est pas sûre.",
    ),
    "translate_documents": Text(
        "Translate documents",
        "Traduire les documents",
        "Si les passages sont traduits à l’indexation d’un document, pour qu’une question dans l’autre langue les"
        " trouve. Il faut un traducteur (TRANSLATION_MODEL) ; les citations restent dans sa langue.",
    ),
    "tool_rounds": Text(
        "Rounds of further searches",
        "Recherches supplémentaires",
        "Nombre de recherches supplémentaires qu’un modèle de langage peut faire avant de répondre ; 0 pour aucune.",
    ),
    "prompt_profile": Text(
        "Prompt",
        "Invite",
        "Comment le modèle de langage est interrogé : en entier ; de façon compacte, avec quatre passages numérotés,"
        " quelques règles et aucun outil, comme il convient aux modèles jusqu’à 8 milliards de paramètres ; ou selon sa"
        " taille (automatique), si son nom ou son serveur l’indique.",
    ),
    "notebook_models": Text(
        "Models for notebooks",
        "Modèles pour les carnets",
        "Modèles de langage que le propriétaire d’un carnet peut choisir pour ses réponses, séparés par des virgules,"
        " tels que le serveur du modèle de langage les nomme. Si le champ est vide : le modèle habituel seul.",
    ),
    "match_count": Text(
        "Hits of a search",
        "Résultats d’une recherche",
        "Nombre de passages qu’une recherche, ou une fonction SQL d’une seule méthode, renvoie quand l’appelant n’en"
        " fixe aucun.",
    ),
    "hybrid_top_k": Text("Passages kept", "Passages retenus", "Nombre de passages retenus du classement fusionné."),
    "rerank_count": Text(
        "Passages reranked",
        "Passages reclassés",
        "Nombre de passages, depuis le haut du classement fusionné, que le reclasseur réordonne, s’il y en a un.",
    ),
    "arm_count": Text(
        "Passages per ranking",
        "Passages par classement",
        "Nombre de passages que chaque classement apporte à la fusion.",
    ),
    "fts_weight": Text("Weight of words", "Poids des mots", "Poids du classement plein texte dans la fusion."),
    "vector_weight": Text("Weight of vectors", "Poids des vecteurs", "Poids du classement vectoriel dans la fusion."),
    "blend_weight": Text(
        "Weight of the blend", "Poids du mélange", "Poids du classement par score mélangé dans la fusion."
    ),
    "blend_alpha": Text(
        "Share of vectors in the blend",
        "Part des vecteurs dans le mélange",
        "Part du score vectoriel dans le score mélangé.",
    ),
    "rrf_k": Text(
        "Constant of the fusion", "Constante de la fusion", "Constante k de la fusion par rangs réciproques."
    ),
    "foreign_vector_weight": Text(
        "Vectors in an unknown language",
        "Vecteurs dans une langue inconnue",
        "Facteur de toute contribution des vecteurs quand le modèle d’embedding ne parle pas la langue de la question.",
    ),
    "foreign_fts_weight": Text(
        "Words in another language",
        "Mots dans une autre langue",
        "Facteur de ce que comptent les mots dans un passage d’une autre langue que celle de la question, avec laquelle"
        " il ne partage guère que des noms.",
    ),
    "match_threshold": Text(
        "Similarity threshold of match_chunks",
        "Seuil de similarité de match_chunks",
        "Similarité en dessous de laquelle la fonction SQL match_chunks écarte un passage quand l’appelant ne fixe"
        " aucun seuil.",
    ),
    "max_file_megabytes": Text(
        "Largest file (MB)", "Plus grand fichier (Mo)", "Taille du plus grand fichier accepté, en mégaoctets."
    ),
    "max_pages": Text("Most pages", "Pages au plus", "Plus grand nombre de pages qu’un document peut avoir."),
    "chunk_tokens": Text(
        "Size of a passage (tokens)",
        "Taille d’un passage (jetons)",
        "Taille visée d’un passage, en jetons du modèle d’embedding.",
    ),
    "chunk_overlap": Text(
        "Overlap of passages (tokens)",
        "Chevauchement des passages (jetons)",
        "Nombre de jetons que des passages voisins partagent.",
    ),
    "chunking_strategy": Text(
        "Embedding of passages",
        "Embedding des passages",
        "Comment les passages sont vectorisés : chacun pour lui-même (fixe), ou à partir des vecteurs des jetons du"
        " texte qui les entoure (tardif).",
    ),
    "max_attempts": Text(
        "Attempts at a document",
        "Essais par document",
        "Nombre d’essais manqués après lesquels l’ingestion d’un document est abandonnée.",
    ),
    "questions_per_day": Text(
        "Questions per day",
        "Questions par jour",
        "Nombre de questions qu’une personne peut poser par jour (UTC) ; 0 pour aucune limite.",
    ),
    "requests_per_minute": Text(
        "Requests per minute",
        "Requêtes par minute",
        "Nombre de questions, de recherches et d’appels d’outils d’assistants, ensemble, qu’une personne peut envoyer"
        " par minute ; 0 pour aucune limite.",
    ),
    "key_requests_per_minute": Text(
        "Requests of an API key per minute",
        "Requêtes d’une clé d’API par minute",
        "Nombre de requêtes qu’une clé d’API peut envoyer par minute ; 0 pour aucune limite.",
    ),
    "uploads_per_minute": Text(
        "Uploads per minute",
        "Envois par minute",
        "Nombre d’envois de fichiers qu’une personne peut commencer par minute ; 0 pour aucune limite.",
    ),
    "max_documents": Text(
        "Documents of a person",
        "Documents d’une personne",
        "Nombre de documents qu’une personne peut avoir, anciennes versions comprises ; 0 pour aucune limite.",
    ),
    "max_library_megabytes": Text(
        "Library of a person (MB)",
        "Bibliothèque d’une personne (Mo)",
        "Mégaoctets de fichiers qu’une personne peut conserver ; 0 pour aucune limite.",
    ),
    "retention_days": Text(
        "Days a conversation is kept",
        "Jours de conservation d’une conversation",
        "Nombre de jours après son dernier message au bout desquels une conversation est supprimée.",
    ),
    "price_input_per_million": Text(
        "Price of reading (US $ per million tokens)",
        "Prix de lecture ($ US par million de jetons)",
        "Dollars américains par million de jetons que le modèle de langage lit ; 0 si le prix est inconnu, et aucun"
        " coût n’est affiché.",
    ),
    "price_output_per_million": Text(
        "Price of writing (US $ per million tokens)",
        "Prix d’écriture ($ US par million de jetons)",
        "Dollars américains par million de jetons que le modèle de langage écrit ; 0 si le prix est inconnu.",
    ),
    "price_translation_input_per_million": Text(
        "Price of reading for translation (US $ per million tokens)",
        "Prix de lecture pour la traduction ($ US par million de jetons)",
        "Dollars américains par million de jetons que le traducteur des documents lit ; 0 si le prix est inconnu.",
    ),
    "price_translation_output_per_million": Text(
        "Price of writing for translation (US $ per million tokens)",
        "Prix d’écriture pour la traduction ($ US par million de jetons)",
        "Dollars américains par million de jetons que le traducteur des documents écrit ; 0 si le prix est inconnu.",
    ),
}

# The labels of the choices, by setting and value.
CHOICES: Final[Mapping[str, Mapping[str, tuple[str, str]]]] = {
    "prompt_profile": {
        "auto": ("Automatic", "Automatique"),
        "full": ("Full", "Entière"),
        "compact": ("Compact", "Compacte"),
    },
    "translate_documents": {
        "off": ("Off", "Non"),
        "en_to_fr": ("English into French", "De l’anglais vers le français"),
        "fr_to_en": ("French into English", "Du français vers l’anglais"),
        "both": ("In both directions", "Dans les deux sens"),
    },
    "chunking_strategy": {
        "fixed": ("Each by itself (fixed)", "Chacun pour lui-même (fixe)"),
        "late": ("From the text around (late)", "D’après le texte autour (tardif)"),
    },
}
