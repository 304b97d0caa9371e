"""Builds the smallest models that fastembed loads: a table of word vectors, a table of scores."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

WIDTH = 8


def _save(folder: Path, graph: onnx.GraphProto, vocabulary: dict[str, int]) -> Path:
    folder.mkdir(parents=True)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, str(folder / "model.onnx"))
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"model_max_length": 512, "pad_token": "[PAD]"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    (folder / "config.json").write_text(json.dumps({"hidden_size": WIDTH, "pad_token_id": 0}))
    return folder


def _inputs() -> list[onnx.ValueInfoProto]:
    return [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "sequence"])
        for name in ("input_ids", "attention_mask")
    ]


def embedding_model(
    folder: Path, meanings: Mapping[str, int], seed: int = 0, factor: float = 5
) -> Path:
    """Write a model under which words of the same meaning (a number) have the same vector."""
    vocabulary = {"[PAD]": 0, "[UNK]": 1, **{word: n for n, word in enumerate(meanings, 2)}}
    chance = np.random.default_rng(seed)
    directions = chance.normal(size=(max(meanings.values()) + 1, WIDTH))
    table = np.full((len(vocabulary), WIDTH), 0.01, np.float32)
    table[0] = 0
    for word, meaning in meanings.items():
        table[vocabulary[word]] = factor * directions[meaning]
    output = helper.make_tensor_value_info(
        "last_hidden_state", TensorProto.FLOAT, ["batch", "sequence", WIDTH]
    )
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["vectors"]),
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["mask", "axis"], ["wide_mask"]),
        helper.make_node("Mul", ["vectors", "wide_mask"], ["last_hidden_state"]),
    ]
    values = [
        numpy_helper.from_array(table, "table"),
        numpy_helper.from_array(np.array([2], np.int64), "axis"),
    ]
    return _save(
        folder, helper.make_graph(nodes, "embedding", _inputs(), [output], values), vocabulary
    )


def cross_encoder(folder: Path, scores: Mapping[str, float]) -> Path:
    """Write a model that scores a pair by the mean score of the words in it."""
    vocabulary = {"[PAD]": 0, "[UNK]": 1, **{word: n for n, word in enumerate(scores, 2)}}
    table = np.array([[0.0], [0.0], *([value] for value in scores.values())], np.float32)
    output = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 1])
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["each"]),
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["mask", "axis"], ["wide_mask"]),
        helper.make_node("Mul", ["each", "wide_mask"], ["masked"]),
        helper.make_node("ReduceMean", ["masked"], ["logits"], axes=[1], keepdims=0),
    ]
    values = [
        numpy_helper.from_array(table, "table"),
        numpy_helper.from_array(np.array([2], np.int64), "axis"),
    ]
    return _save(
        folder, helper.make_graph(nodes, "cross_encoder", _inputs(), [output], values), vocabulary
    )
