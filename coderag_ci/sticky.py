"""One comment of ours in a pull request: made once, then edited in its place."""

from __future__ import annotations

from typing import NamedTuple

from coderag_ci.client import Busy, Refused
from coderag_ci.forges import Comment, PullRequest

_MARK = "<!-- coderag-ci: "
_GONE = (404, 410)


class Settled(NamedTuple):
    """Which comment says it now, 0 for none, and what was done."""

    number: int
    done: str


def settle(pull: PullRequest, text: str, digest: str, head: str, *, create: bool = True) -> Settled:
    """See to it that one comment of ours says ``text``; right to do twice.

    One that is there with this digest stays as it is, of several the oldest is kept. Nothing is
    done where the head has moved: the run for that one has its own to say. ``create``: whether
    one is made where there is none. Raises Refused.
    """
    if (there := pull.head()) != head:
        return Settled(0, f"the head has moved from {head[:12]} to {there[:12]}")
    mark = f"{_MARK}{digest} -->"
    body = f"{mark}\n{text}"
    me = pull.me()
    if not me:
        raise Refused("the forge does not say whose token this is", 403)
    ours = _ours(pull, me)
    done = "the comment says so already"
    if not ours and not create:
        return Settled(0, "there is nothing to say")
    if not ours:
        made = pull.create(body)
        done = "the comment was made"
        ours = {made.number: made} | _ours(pull, me)  # another run may have made one meanwhile
    first, *others = (ours[number] for number in sorted(ours))
    same = first.body.startswith(mark)
    if not same:
        _edit(pull, first, body)
    for other in others:
        _delete(pull, other)
    return Settled(first.number, done if same else "the comment was edited")


def _ours(pull: PullRequest, me: str) -> dict[int, Comment]:
    return {
        comment.number: comment
        for comment in pull.comments()
        if comment.author == me and comment.body.startswith(_MARK)
    }


def _edit(pull: PullRequest, comment: Comment, body: str) -> None:
    """Change a comment. Raises Busy where it is gone meanwhile, and Refused."""
    try:
        pull.edit(comment.number, body)
    except Refused as error:
        if error.status not in _GONE:
            raise
        raise Busy(error.message, error.status, 0) from error


def _delete(pull: PullRequest, comment: Comment) -> None:
    try:
        pull.delete(comment.number)
    except Refused as error:
        if error.status not in _GONE:
            raise
