"""MarianMT models (`Helsinki-NLP/opus-mt-en-fr` and `-fr-en`), on this machine, with CTranslate2.

A folder `opus-mt-en-fr` holds an unpacked OPUS-MT release, whose weights are converted once, or what a converter of
CTranslate2 has written, with the two SentencePiece models of the release (`source.spm`, `target.spm`).

PyTorch with transformers would read more formats, but takes some 900 MB; CTranslate2 takes 43 MB and has its own beam
search and 8-bit weights. On ONNX Runtime the beam search would have to be ours.
https://opennmt.net/CTranslate2/guides/opus_mt.html
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from functions.core import errors, models
from functions.core.text import line_breaks, sentences

PACKAGES: Final = ("ctranslate2==4.8.5", "sentencepiece==0.2.3")
BEAM_SIZE: Final = 4
MAX_TOKENS: Final = 512
"""The longest input of an OPUS-MT model; only a sentence without an end is longer, and is cut."""
BATCH_TOKENS: Final = 1024


@dataclass(frozen=True, slots=True)
class _Pair:
    translator: Any
    source: Any
    target: Any


class MarianTranslator:
    """Translates sentence by sentence, as the models were trained; each pair is loaded on its first use."""

    def __init__(self, folder: Path, *, threads: int = 1) -> None:
        self._folder = folder
        self._threads = threads
        self._pairs: dict[str, _Pair] = {}
        self._lock = threading.Lock()

    def translate(self, text: str, source: models.Lang, target: models.Lang) -> tuple[str, models.Usage]:
        """Raises ModelRejectedError with advice where packages or files are missing. No tokens are counted."""
        with self._lock:
            if source not in self._pairs:
                self._pairs[source] = self._load(f"opus-mt-{source}-{target}")
        pair = self._pairs[source]
        line = line_breaks.unwrap(text)
        pieces = [pair.source.encode(line[start:end], out_type=str) for start, end in sentences.split_sentences(line)]
        results = pair.translator.translate_batch(
            pieces,
            beam_size=BEAM_SIZE,
            max_batch_size=BATCH_TOKENS,
            batch_type="tokens",
            max_input_length=MAX_TOKENS,
            max_decoding_length=MAX_TOKENS,
        )
        return " ".join(pair.target.decode(result.hypotheses[0]) for result in results), models.Usage()

    def _load(self, name: str) -> _Pair:
        try:
            import ctranslate2
            import sentencepiece
        except ImportError as exc:
            packages = " ".join(PACKAGES)
            raise errors.ModelRejectedError(
                f"The local translator needs two more packages: .venv/bin/pip install {packages}", status=404
            ) from exc
        folder = self._folder / name
        try:
            return _Pair(
                ctranslate2.Translator(str(find_model(folder)), compute_type="auto", intra_threads=self._threads),
                sentencepiece.SentencePieceProcessor(model_file=str(folder / "source.spm")),
                sentencepiece.SentencePieceProcessor(model_file=str(folder / "target.spm")),
            )
        except (RuntimeError, ValueError, OSError) as exc:
            raise errors.ModelRejectedError(
                f"The folder of TRANSLATION_FOLDER has no model {name} that can be loaded. Unpack its release there.",
                status=404,
            ) from exc


def find_model(folder: Path) -> Path:
    """The folder of the CTranslate2 model; that of a release is made from it on the first use, with 8-bit weights."""
    if (folder / "model.bin").exists():
        return folder
    converted = folder / "ctranslate2"
    if not converted.exists():
        from ctranslate2.converters import OpusMTConverter

        unfinished = folder / f"ctranslate2.{os.getpid()}"
        OpusMTConverter(str(folder)).convert(str(unfinished), quantization="int8", force=True)
        unfinished.rename(converted)
    return converted
