"""Runs cases: repository by repository, in several processes, resumable."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import hashlib
import multiprocessing
import multiprocessing.process
import os
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

import coderag_ci
from coderag_ci import config as configuration
from coderag_ci import index, store
from coderag_ci.config import Config
from coderag_ci.errors import CoderagError, SetupError
from coderag_ci.eval.cases import Case, Skip
from coderag_ci.eval.outcome import Outcome, measure
from coderag_ci.eval.sight import Sight, Unusable, see
from coderag_ci.files import Journal, add_line
from coderag_ci.gitrepo import Entry, GitRepo
from coderag_ci.pathrules import PathRules
from coderag_ci.progress import Progress
from coderag_ci.view import View

_SLICE = 8  # cases of one repository that are handed to a process at once


@dataclasses.dataclass(frozen=True)
class Variant:
    """One way to configure the pipeline: a label and the settings that differ from the base."""

    label: str
    settings: Mapping[str, Any]

    def config(self, base: Mapping[str, Any]) -> Config:
        """Return the config that a base of dotted keys gives with these settings."""
        return configuration.resolve(None, "", {}, {**base, **self.settings}).config


@dataclasses.dataclass(frozen=True)
class Plan:
    """What is run: cases by line, the variants, and where repositories and indexes are."""

    cases: Sequence[tuple[int, Case]]
    variants: Sequence[Variant]
    base: Mapping[str, Any]
    places: Mapping[str, Path]
    index_dir: Path | None
    jobs: int


class Done(msgspec.Struct, frozen=True):
    """What one case gave under one variant: an outcome, or why there is none."""

    variant: str
    case: str
    outcome: Outcome | None = None
    reason: str = ""


@dataclasses.dataclass(frozen=True)
class _Slice:
    """Neighbouring cases of one repository, to be run by one process."""

    repo: Path
    index_dir: Path
    cases: Sequence[Case]
    variants: Sequence[Variant]
    base: Mapping[str, Any]
    partial: str | None


def run(plan: Plan, kept: Kept, progress: Progress) -> tuple[dict[str, list[Outcome]], list[Skip]]:
    """Run every case under every variant; returns outcomes by label, in the order of the cases.

    What ``kept`` holds is not run again. A case that can not be run is skipped by line, a
    repository that was not found once.
    """
    skipped = _without_place(plan)
    by_id = {case.id: (line, case) for line, case in plan.cases if case.repo in plan.places}
    wanted = [case for _, case in by_id.values()]
    done = {(one.variant, one.case): one for one in kept.done(wanted)}
    left = [case for case in wanted if _lacking(plan, case, done)]
    slices = _slices(plan, left, kept.path)
    total = len(wanted)
    with progress.task("cases", worth=total > 1) as advance:
        finished = total - sum(len(one.cases) for some in slices.values() for one in some)
        advance(finished, total)
        for one, found in _work(slices, plan.jobs):
            done.update({(item.variant, item.case): item for item in found})
            finished += len(one.cases)
            advance(finished, total)
    outcomes: dict[str, list[Outcome]] = {variant.label: [] for variant in plan.variants}
    for line, case in by_id.values():
        some = [done[variant.label, case.id] for variant in plan.variants]
        reasons = [item.reason for item in some if item.outcome is None]
        if reasons:
            skipped.append(Skip(reasons[0], line, case.id))
            continue
        for item in some:
            assert item.outcome is not None
            outcomes[item.variant].append(item.outcome)
    return outcomes, skipped


def _without_place(plan: Plan) -> list[Skip]:
    missing: dict[str, list[int]] = {}
    for line, case in plan.cases:
        if case.repo not in plan.places:
            missing.setdefault(case.repo, []).append(line)
    return [
        Skip(f"no repository found for {repo}: {len(lines)} cases", lines[0])
        for repo, lines in missing.items()
    ]


def _lacking(plan: Plan, case: Case, done: Mapping[tuple[str, str], Done]) -> bool:
    return any((variant.label, case.id) not in done for variant in plan.variants)


def _slices(plan: Plan, cases: Sequence[Case], partial: str | None) -> dict[str, list[_Slice]]:
    """Cut each repository's cases into slices by date; the first has one case.

    It makes the index that the others start from.
    """
    by_repo: dict[str, list[Case]] = {}
    for case in cases:
        by_repo.setdefault(case.repo, []).append(case)
    found = {}
    for repo, some in by_repo.items():
        some.sort(key=lambda case: (case.date, case.id))
        place = plan.places[repo]
        folder = index_directory(GitRepo(str(place)), plan.index_dir, repo)
        parts = [some[:1], *(some[at : at + _SLICE] for at in range(1, len(some), _SLICE))]
        found[repo] = [
            _Slice(place, folder, part, plan.variants, plan.base, partial) for part in parts
        ]
    return found


def index_directory(repo: GitRepo, given: Path | None, name: str) -> Path:
    """Return where the indexes of evaluated views are kept, apart from those of ``context``."""
    if given is None:
        return repo.common_dir / "coderag-ci-eval"
    folder = name.replace("/", "+").replace("\0", "+")[:60]  # a sign may take four bytes
    return given / (f"+{folder}" if folder.strip(".") == "" else folder)


def _work(slices: Mapping[str, Sequence[_Slice]], jobs: int) -> Iterator[tuple[_Slice, list[Done]]]:
    """Run slices, the first of each repository before the others of it."""
    if jobs == 1:
        for some in slices.values():
            for one in some:
                yield one, _run_slice(one)
        return
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(jobs, context, _leave_at_once) as pool:
        waiting: dict[concurrent.futures.Future[list[Done]], tuple[_Slice, Sequence[_Slice]]] = {
            pool.submit(_run_slice, some[0]): (some[0], some[1:]) for some in slices.values()
        }
        try:
            while waiting:
                ready, _ = concurrent.futures.wait(
                    waiting, return_when=concurrent.futures.FIRST_COMPLETED
                )
                for future in ready:
                    one, rest = waiting.pop(future)
                    waiting.update({pool.submit(_run_slice, other): (other, ()) for other in rest})
                    yield one, future.result()
        except concurrent.futures.BrokenExecutor as error:
            raise SetupError(
                "a process was killed, perhaps for want of memory",
                "run again with fewer --jobs; with --out it goes on where it was",
            ) from error
        except BaseException:  # given up: what runs is not waited for
            pool.shutdown(wait=False, cancel_futures=True)
            for process in multiprocessing.active_children():
                process.terminate()
            raise


def _leave_at_once() -> None:
    """In a worker: let Ctrl-C end it without a traceback; the parent says that it was told."""
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    parent = multiprocessing.parent_process()
    if parent is not None:  # a worker whose parent was killed would go on writing
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: multiprocessing.process.BaseProcess) -> None:
    parent.join()
    os._exit(1)


def _run_slice(one: _Slice) -> list[Done]:
    try:
        repo = GitRepo(str(one.repo))
    except CoderagError as error:
        return [
            Done(variant.label, case.id, reason=error.message)
            for case in one.cases
            for variant in one.variants
        ]
    by_id = {case.id: case for case in one.cases}
    found = []
    for number, variant in enumerate(one.variants):
        for done in _run_variant(repo, one, variant, channels=number == 0):
            keep(one.partial, (digest_of(by_id[done.case]), done))
            found.append(done)
    return found


def _run_variant(repo: GitRepo, one: _Slice, variant: Variant, *, channels: bool) -> Iterator[Done]:
    config = variant.config(one.base)
    rules = PathRules(config)
    sights: dict[str, Sight] = {}
    for case in one.cases:
        try:
            sights[case.id] = see(repo, case, rules)
        except Unusable as error:
            yield Done(variant.label, case.id, reason=str(error))
    index_views(repo, list(sights.values()), one.index_dir)
    for case in one.cases:
        if (sight := sights.get(case.id)) is None:
            continue
        try:
            outcome = measure(repo, case, sight, config, rules, one.index_dir, channels)
        except CoderagError as error:
            yield Done(variant.label, case.id, reason=error.message)
        else:
            yield Done(variant.label, case.id, outcome)


def index_views(repo: GitRepo, sights: Sequence[Sight], index_dir: Path) -> None:
    """Parse the blobs of several views at once, so that parsers start once for all of them."""
    if not sights:
        return
    old = (
        Entry(file.old_path, file.old_mode, file.old_blob)
        for sight in sights
        for file in sight.diff.files
        if file.kind == "text" and file.status != "added"
    )
    seen = (entry for sight in sights for entry in sight.view.entries)
    entries = tuple(dict.fromkeys([*seen, *old]))
    contents = {blob: data for sight in sights for blob, data in sight.view.contents.items()}
    kept = store.Store(index_dir)
    try:
        size = sights[0].view.chunk_size
        index.update(repo, View(entries, contents=contents, chunk_size=size), kept)
    finally:
        kept.close()


class Kept:
    """The cases that are done, beside the results file, so that a stop loses nothing.

    A line is a JSON object: the fingerprint of what is run first, then a case each, written
    by the process that ran it.
    """

    def __init__(self, path: str | None, fingerprint: str) -> None:
        """``path``: None keeps nothing.

        Raises SetupError where it can not be written, or where another run does.
        """
        self.path = path
        self._journal = Journal(path) if path is not None else None
        self._done: dict[tuple[str, str, str], Done] = {}
        self.resumed = False
        if self._journal is not None:
            self._read(self._journal, fingerprint.encode())

    def _read(self, journal: Journal, fingerprint: bytes) -> None:
        data = journal.read()
        whole = data[: data.rfind(b"\n") + 1]
        lines = whole.split(b"\n")[:-1]
        self.resumed = bool(lines) and lines[0] == fingerprint
        journal.cut(len(whole) if self.resumed else 0)  # also what a stop left half-written
        if not self.resumed:
            add_line(journal.path, fingerprint)
            return
        for line in lines[1:]:
            try:
                digest, done = msgspec.json.decode(line, type=tuple[str, Done])
            except msgspec.MsgspecError:
                continue
            self._done[digest, done.variant, done.case] = done

    def done(self, cases: Sequence[Case]) -> list[Done]:
        """Return what is known of these cases, as they are now."""
        digests = {(digest_of(case), case.id) for case in cases}
        return [done for (digest, _, case), done in self._done.items() if (digest, case) in digests]

    def drop(self) -> None:
        """Remove the file, once the results are written."""
        if self._journal is not None:
            self._journal.remove()

    def close(self) -> None:
        """Let another run go on from here."""
        if self._journal is not None:
            self._journal.close()


def keep(path: str | None, done: tuple[str, Done]) -> None:
    """Add a case (its digest, what it gave) to the file of those that are done."""
    if path is not None:
        add_line(path, msgspec.json.encode(done))


def digest_of(case: Case) -> str:
    """Digest of what a case asks and expects, to know it again in another run's results."""
    gold = [(item.path, item.hunks, item.is_test, item.file_only) for item in case.gold]
    asked = (case.kind, case.base, case.head, case.query_files, case.subject, case.query)
    data = msgspec.json.encode((case.id, asked, case.docstring, gold, case.not_gold))
    return hashlib.blake2b(data, digest_size=8).hexdigest()


def fingerprint(variants: Sequence[Variant], base: Mapping[str, Any]) -> str:
    """Digest of what decides an outcome besides the case: this code, and the settings."""
    state = hashlib.blake2b(digest_size=16)
    package = Path(coderag_ci.__file__).parent
    for file in sorted(file for end in ("py", "scm") for file in package.rglob(f"*.{end}")):
        state.update(file.read_bytes())
    settings = [(variant.label, sorted(variant.settings.items())) for variant in variants]
    state.update(msgspec.json.encode((settings, sorted(base.items()))))
    return state.hexdigest()
