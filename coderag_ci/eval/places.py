"""Where the repositories of the cases are on this machine."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from coderag_ci.errors import CoderagError
from coderag_ci.gitrepo import GitRepo
from coderag_ci.links import web_address


def find(names: Iterable[str], folder: str | None, single: str | None) -> dict[str, Path]:
    """Return the place of each repository that was found.

    In ``folder`` it is ``owner/name``, ``owner+name`` or ``name``, a work tree or bare;
    ``single`` stands for every repository that is not there. Raises SetupError where
    ``single`` is no repository.
    """
    fallback = Path(single) if single is not None else None
    if single is not None:
        GitRepo(single)
    found = {}
    for name in dict.fromkeys(names):
        place = _in_folder(Path(folder), name) if folder is not None else None
        if (place := place or fallback) is not None:
            found[name] = place
    return found


def _in_folder(folder: Path, name: str) -> Path | None:
    if not all(part not in ("", ".", "..") for part in name.split("/")) or "\0" in name:
        return None  # a name is data: it must not lead out of the folder
    names = (name, name.replace("/", "+"), name.rpartition("/")[2])
    return next((folder / one for one in names if _is_top(folder / one)), None)


def _is_top(place: Path) -> bool:
    """Whether a folder is a repository itself, rather than a folder in one."""
    if not os.path.isdir(place):  # a name may be too long
        return False
    try:
        repo = GitRepo(str(place))
    except CoderagError:
        return False
    top = place.resolve()
    return top == repo.root or (repo.bare and top == repo.git_dir)


def name_of(repo: GitRepo) -> str:
    """Return a repository's name: owner/name of its remote, else that of its folder."""
    address = web_address(repo.remote_url())
    if address:
        return "/".join(address.split("/")[-2:])
    folder = repo.root or repo.git_dir
    if folder.name == ".git":
        folder = folder.parent
    return folder.name.removesuffix(".git") or "repository"
