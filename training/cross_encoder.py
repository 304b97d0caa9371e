"""Trains the cross-encoder on what the product would show it.

    python training/dump.py --texts …   # see training/README.md
    python training/cross_encoder.py --texts DUMP --start MODEL --out CHECKPOINTS [--minutes N]

DUMP holds the CASE.json.gz of ``training/dump.py``, MODEL a folder with all-MiniLM-L6-v2. The first
``--layers`` layers are trained with the listwise softmax loss (ListNet, Cao et al. 2007): a group
is one place that the commit changed too, and seven that the formula ranked high and that it did
not. In a third of the groups the changed units' names are masked in both texts, in a third the
title is left out. Stops after ``--minutes`` or ``--epochs`` and goes on from CHECKPOINTS when it is
called again. Every tenth repository is held out; its MRR is what the log shows. Needs torch,
transformers, tokenizers.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import random
import re
import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
import transformers
from tokenizers import Tokenizer

_NEGATIVES = 7
_MOST_POSITIVES = 4  # groups a case and epoch
_TOKENS = 224
_RATE = 8e-5
_WARM = 0.05
_GROUPS = 4  # a step
_SAVE_EVERY = 100  # steps
_HELD_OUT = 10  # one repository in so many
_MASK = "name"


class Case(NamedTuple):
    """One case: title, query without title, names of changed units, gold and other passages."""

    repo: str
    title: str
    query: str
    names: tuple[str, ...]
    gold: tuple[str, ...]
    others: tuple[str, ...]


def read(folder: Path) -> list[Case]:
    """Read the cases that have both gold and other passages."""
    found = []
    for path in sorted(folder.glob("*/*.json.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            data = json.load(file)
        gold = tuple(one["text"] for one in data["passages"] if one["gold"])
        others = tuple(one["text"] for one in data["passages"] if not one["gold"])
        title = data["title"]
        query = data["query"].removeprefix(title).lstrip("\n")
        if gold and len(others) >= _NEGATIVES:
            names = tuple(sorted({name for name in data["names"] if len(name) > 2}))
            found.append(Case(path.parent.name, title, query, names, gold, others))
    return found


def is_held_out(case: Case) -> bool:
    """Whether a case is of a repository that is not trained on."""
    return hashlib.blake2b(case.repo.encode()).digest()[0] % _HELD_OUT == 0


def groups(cases: Sequence[Case], seed: int) -> Iterator[list[tuple[str, str]]]:
    """Yield the groups of an epoch: pairs of which the first is the positive."""
    chance = random.Random(seed)  # noqa: S311  # the same groups each time
    wanted = [
        (case, gold)
        for case in cases
        for gold in chance.sample(case.gold, min(_MOST_POSITIVES, len(case.gold)))
    ]
    chance.shuffle(wanted)
    for case, gold in wanted:
        query = case.query if chance.random() < 1 / 3 else f"{case.title}\n{case.query}"
        texts = [gold, *chance.sample(case.others, _NEGATIVES)]
        if case.names and chance.random() < 1 / 3:
            query, *texts = masked([query, *texts], case.names)
        yield [(query, text) for text in texts]


def masked(texts: Sequence[str], names: Sequence[str]) -> list[str]:
    """Replace names in texts, so that what is learnt is more than names."""
    pattern = re.compile("|".join(rf"(?<!\w){re.escape(name)}(?!\w)" for name in names))
    return [pattern.sub(_MASK, text) for text in texts]


def encoded(tokenizer: Tokenizer, pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return the tensors of some pairs, (pairs, tokens)."""
    found = tokenizer.encode_batch(list(pairs))
    return {
        "input_ids": torch.tensor([one.ids for one in found]),
        "attention_mask": torch.tensor([one.attention_mask for one in found]),
        "token_type_ids": torch.tensor([one.type_ids for one in found]),
    }


def mrr(model: Any, tokenizer: Tokenizer, cases: Sequence[Case], *, mask: bool) -> float:
    """Return the mean reciprocal rank of each case's first gold among its passages."""
    model.eval()
    total = 0.0
    with torch.no_grad():
        for case in cases:
            texts = [*case.gold[:2], *case.others[:14]]
            query = f"{case.title}\n{case.query}"
            if mask and case.names:
                query, *texts = masked([query, *texts], case.names)
            scores = model(**encoded(tokenizer, [(query, text) for text in texts])).logits[:, 0]
            best = scores[: min(2, len(case.gold))].max()
            total += 1 / (1 + int((scores[min(2, len(case.gold)) :] >= best).sum()))
    model.train()
    return total / max(len(cases), 1)


def save(out: Path, model: Any, state: dict[str, Any]) -> None:
    """Write a checkpoint beside and rename it."""
    temporary = out.with_name(out.name + ".new")
    shutil.rmtree(temporary, ignore_errors=True)
    model.save_pretrained(temporary)
    torch.save(state, temporary / "state.pt")
    shutil.rmtree(out, ignore_errors=True)
    temporary.rename(out)


def train(given: argparse.Namespace) -> None:
    """Train until the time or the epochs are over; every so often check and save."""
    torch.manual_seed(1)
    cases = read(given.texts)
    held = [case for case in cases if is_held_out(case)][:80]
    kept = [case for case in cases if not is_held_out(case)]
    tokenizer = Tokenizer.from_file(str(given.start / "tokenizer.json"))
    tokenizer.enable_truncation(_TOKENS)
    tokenizer.enable_padding()
    resumed = (given.out / "state.pt").is_file()
    source = given.out if resumed else given.start
    config = transformers.AutoConfig.from_pretrained(source, num_labels=1)
    config.num_hidden_layers = given.layers
    model = transformers.AutoModelForSequenceClassification.from_pretrained(source, config=config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=_RATE, weight_decay=0.01)
    size = sum(1 for _ in groups(kept, 0)) // _GROUPS
    total = given.steps or size * given.epochs
    state: dict[str, Any] = {"step": 0, "seconds": 0.0, "log": []}
    if resumed:
        state = torch.load(given.out / "state.pt", weights_only=True)
        optimizer.load_state_dict(state["optimizer"])
    print(
        f"{len(kept)} cases, {len(held)} held out, {size} steps an epoch, {total} in all",
        flush=True,
    )

    def rate(step: int) -> float:
        warm = max(1, int(total * _WARM))
        return min((step + 1) / warm, max(0.0, (total - step) / (total - warm)))

    model.train()
    started, losses, step = time.monotonic(), [], state["step"]
    while step < total and time.monotonic() - started < given.minutes * 60:
        epoch, skip = divmod(step, size)
        batch: list[list[tuple[str, str]]] = []
        for number, group in enumerate(groups(kept, epoch)):
            if number < skip * _GROUPS:
                continue
            batch.append(group)
            if len(batch) < _GROUPS:
                continue
            for one in optimizer.param_groups:
                one["lr"] = _RATE * rate(step)
            pairs = [pair for some in batch for pair in some]
            logits = model(**encoded(tokenizer, pairs)).logits.view(_GROUPS, -1)
            loss = torch.nn.functional.cross_entropy(
                logits, torch.zeros(_GROUPS, dtype=torch.int64)
            )
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(float(loss))
            batch, step = [], step + 1
            over = step >= total or time.monotonic() - started >= given.minutes * 60
            if step % _SAVE_EVERY == 0 or over:
                plain = mrr(model, tokenizer, held, mask=False)
                bare = mrr(model, tokenizer, held, mask=True)
                spent = state["seconds"] + time.monotonic() - started
                mean = sum(losses) / len(losses)
                said = [step, round(mean, 4), round(plain, 4), round(bare, 4), round(spent)]
                print("step {} loss {} mrr {} masked {} seconds {}".format(*said), flush=True)
                log = [*state["log"], said]
                state = {**state, "log": log, "step": step, "optimizer": optimizer.state_dict()}
                save(given.out, model, {**state, "seconds": spent})
                losses = []
            if over:
                break
    for name in ("tokenizer.json", "LICENSE", "NOTICE"):
        shutil.copy(given.start / name, given.out)


def main() -> None:
    """Read the arguments and train."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=Path, required=True)
    parser.add_argument("--start", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--steps", type=int, default=0, help="instead of epochs")
    parser.add_argument("--minutes", type=float, default=1e9)
    train(parser.parse_args())


if __name__ == "__main__":
    main()
