"""The translators: models behind the OpenAI protocol, and MarianMT models on this machine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from functions.adapters.laptop import marian
from functions.adapters.models.openai_translator import OpenAITranslator
from functions.core import errors, models
from functions.core.retrieval.neutral_sentences import read_neutral_sentences
from tests.support.fakes.model_server import FakeModelServer, Reply
from tests.support.requirements import REPOSITORY

WIDTH, DEPTH = 8, 1


def test_a_model_gets_the_passage_as_data_and_its_tokens_are_counted() -> None:
    """LANG-3"""
    with FakeModelServer() as server:
        server.script("<think>hm</think>Le chat dort.")
        translator = OpenAITranslator(model="m", base_url=server.base_url)
        text, usage = translator.translate("The cat sleeps.", "en", "fr")
    rules, passage = (message["content"] for message in server.chats[0]["messages"])
    assert (text, passage) == ("Le chat dort.", "<passage>\nThe cat sleeps.\n</passage>")
    assert rules.startswith("You translate passages of documents from English into French.")
    assert usage == models.Usage(len(rules.split()) + 5, 3, "m")


def test_a_busy_model_server_is_asked_again_after_the_time_it_names() -> None:
    """LANG-3"""
    with FakeModelServer() as server:
        server.script(Reply(status=429, headers={"Retry-After": "0"}), "Le chat.")
        assert OpenAITranslator(model="m", base_url=server.base_url).translate("The cat.", "en", "fr")[0] == "Le chat."


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tiny OPUS-MT release, opus-mt-en-fr, with weights of nothing in particular."""
    folder = tmp_path_factory.mktemp("translation")
    write_release(folder / "opus-mt-en-fr")
    return folder


def write_release(folder: Path) -> None:
    import sentencepiece

    folder.mkdir()
    for side, lang in (("source", "en"), ("target", "fr")):
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter([getattr(pair, lang) for pair in read_neutral_sentences()]),
            model_prefix=str(folder / side),
            vocab_size=200,
            hard_vocab_limit=False,
            minloglevel=2,
        )
    pieces = dict.fromkeys(["</s>", "<unk>"])
    for side in ("source", "target"):
        (folder / f"{side}.model").rename(folder / f"{side}.spm")
        processor = sentencepiece.SentencePieceProcessor(model_file=str(folder / f"{side}.spm"))
        pieces |= dict.fromkeys(processor.id_to_piece(at) for at in range(3, processor.get_piece_size()))
    pieces |= {"<pad>": None}
    vocabulary = "".join(f"{json.dumps(piece, ensure_ascii=False)}: {at}\n" for at, piece in enumerate(pieces))
    (folder / "opus.vocab.yml").write_text(vocabulary, encoding="utf-8")
    np.savez(folder / "model.npz", **make_weights(len(pieces)))
    (folder / "decoder.yml").write_text("models:\n- model.npz\nvocabs:\n- opus.vocab.yml\n- opus.vocab.yml\n")


def make_weights(vocabulary_size: int) -> Mapping[str, Any]:
    """The arrays of a Marian transformer, by the names that Marian gives them."""
    random = np.random.default_rng(7)

    def draw(*shape: int) -> Any:
        return random.normal(0, 0.5, shape).astype(np.float32)

    weights = {"Wemb": draw(vocabulary_size, WIDTH), "decoder_ff_logit_out_b": draw(1, vocabulary_size)}
    scopes = ["encoder_l1_self", "decoder_l1_self", "decoder_l1_context"]
    for scope, part in product(scopes, "qkvo"):
        weights |= {f"{scope}_W{part}": draw(WIDTH, WIDTH), f"{scope}_b{part}": draw(1, WIDTH)}
    for scope in ("encoder_l1_ffn", "decoder_l1_ffn"):
        weights |= {f"{scope}_W{n}": draw(WIDTH, WIDTH) for n in "12"}
        weights |= {f"{scope}_b{n}": draw(1, WIDTH) for n in "12"}
    for scope in [f"{scope}_Wo" for scope in scopes] + ["encoder_l1_ffn_ffn", "decoder_l1_ffn_ffn"]:
        weights |= {f"{scope}_ln_scale": np.ones((1, WIDTH), np.float32), f"{scope}_ln_bias": draw(1, WIDTH)}
    config = {
        "type": "transformer",
        "transformer-decoder-autoreg": "self-attention",
        "transformer-no-projection": False,
        "transformer-ffn-activation": "relu",
        "transformer-preprocess": "",
        "transformer-postprocess": "dan",
        "transformer-postprocess-emb": "",
        "transformer-postprocess-top": "",
        "transformer-guided-alignment-layer": "last",
        "transformer-heads": 2,
        "enc-depth": DEPTH,
        "dec-depth": DEPTH,
    }
    text = json.dumps(config).encode() + b"\0"
    return weights | {"special:model.yml": np.frombuffer(text, np.int8)}


def test_a_release_of_marian_is_converted_once_and_translates(release: Path) -> None:
    """LANG-3"""
    first, usage = marian.MarianTranslator(release).translate("The cat sleeps. The dog, too.", "en", "fr")
    again, _ = marian.MarianTranslator(release).translate("The cat sleeps. The dog, too.", "en", "fr")
    assert (first == again, bool(first.strip()), usage) == (True, True, models.Usage())
    assert sorted(path.name for path in release.glob("*/ctranslate2*")) == ["ctranslate2"]


def test_a_missing_model_says_what_to_do(release: Path) -> None:
    """LANG-3"""
    with pytest.raises(errors.ModelRejectedError, match="no model opus-mt-fr-en") as caught:
        marian.MarianTranslator(release).translate("Le chat.", "fr", "en")
    assert caught.value.concerns_every_text


def test_the_packages_of_marian_are_those_that_the_tests_install() -> None:
    pinned = (REPOSITORY / "tests" / "requirements.txt").read_text(encoding="utf-8")
    assert [package for package in marian.PACKAGES if f"{package} " not in pinned] == []
