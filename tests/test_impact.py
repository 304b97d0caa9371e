"""The graph of a pack: what changed, what uses it, and the tests that name either."""

from __future__ import annotations

import msgspec

from coderag_ci.pack import Channel, Evidence, Fact, Pack, Place
from coderag_ci.render import as_json
from coderag_ci.render.impact import Impact, impact
from tests.conftest import Command
from tests.packs import shop
from tests.repository import Repository


def shop_pack(command: Command, repository: Repository) -> Pack:
    """Return the real pack of the shop's change."""
    shop(repository)
    result = command("context", "--repo", str(repository.path), "--base", "main", "--format=json")
    return as_json.read(result.out.encode(), "pack")


def told(graph: Impact) -> set[str]:
    """Return the links in words."""
    label = [f"{node.kind} {node.label}" for node in graph.nodes]
    return {f"{label[source]} > {label[target]}" for source, target in graph.edges}


def test_uses_and_tests_are_linked_to_what_changed(
    command: Command, repository: Repository
) -> None:
    """A reviewer sees at a glance who uses what changed, and which test names the users."""
    pack = shop_pack(command, repository)
    testing = msgspec.structs.replace(
        pack.evidence[0],
        path="tests/test_price.py",
        symbol="test_total",
        flags=("test",),
        channels=(Channel("diff", 1, "shares `country` with the change"),),
        text="def test_total():\n    assert total_price([]) == 0",
    )
    graph = impact(msgspec.structs.replace(pack, evidence=(*pack.evidence, testing)), 20)
    assert sorted(told(graph)) == [
        "changed tax_rate > uses invoice.py",
        "changed tax_rate > uses price.py",
        "changed tax_rate > uses print_invoice",
        "changed tax_rate > uses total_price",
        "uses total_price > test test_total",
    ]
    assert (graph.nodes[0].path, graph.more) == ("shop/tax.py", 0)


def test_users_that_a_fact_names_are_drawn_first(command: Command, repository: Repository) -> None:
    """What is named in a fact is not pushed out by what was merely found."""
    places = (Place("shop/old.py", 7, "Old.call"), Place("shop/older.py", 9))
    text = "`Tax.old_rate` (function) was defined in shop/tax.py, and is still used"
    pack = shop_pack(command, repository)
    pack = msgspec.structs.replace(pack, facts=(Fact("dangling", text, places),))
    graph = impact(pack, 3)
    assert told(graph) == {
        "changed old_rate > uses Old.call",
        "changed old_rate > uses older.py",
    }
    assert [node.line for node in graph.nodes] == [0, 7, 9]
    assert graph.more > 0


def test_a_name_without_a_unit_of_its_own_stands_where_the_change_has_it(
    command: Command, repository: Repository
) -> None:
    """An attribute that changed is no unit; a reader still wants to know its file."""
    pack = shop_pack(command, repository)
    using = msgspec.structs.replace(
        pack.evidence[0], channels=(Channel("uses", 1, "reads `lower` (line 8)"),)
    )
    graph = impact(msgspec.structs.replace(pack, evidence=(using,)), 20)
    assert [(node.path, node.line) for node in graph.nodes] == [
        ("shop/tax.py", 0),
        (using.path, 8),
    ]


def test_there_is_no_graph_where_nothing_is_linked(
    command: Command, repository: Repository
) -> None:
    """One box alone, or boxes without a link, would tell nothing."""

    def like(piece: Evidence) -> Evidence:
        return msgspec.structs.replace(piece, channels=(Channel("diff", 1, "shares `tax_rate`"),))

    pack = shop_pack(command, repository)
    evidence = tuple(like(piece) for piece in pack.evidence)
    assert impact(msgspec.structs.replace(pack, evidence=evidence), 20) == Impact()
