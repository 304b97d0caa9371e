"""What the PHP query file finds."""

import pytest

from tests.languages.reading import read

SOURCE = r"""
<?php
namespace Acme\Store;

use Acme\Base\Repository as Repo;
use Acme\{Clock, Model\Order};

const LIMIT = 50, OTHER = LIMIT;
define('STORE_ROOT', __DIR__);
$registry = [DEFAULT_STORE, 'k' => FALLBACK];

/** Keeps orders. */
#[Service(Scope::SHARED)]
final class OrderStore extends Repo implements Countable, Contract\Store
{
    use Loggable, \Acme\Traced;

    public const MAX = self::BASE;
    private ?Order $last = EMPTY_ORDER, $first;
    public static int|Level $opened = 0;

    // Opens a store.
    public function __construct(private readonly Clock $clock, protected int $page = FIRST_PAGE)
    {
        parent::__construct($clock);
        $this->last = NONE;
        self::$opened++;
        static::$opened += STEP;
    }

    /** Finds one. */
    public static function find(Query $query, string $mode = MODE): ?Order
    {
        global $registry;
        $found = new Order($query, NAMED);
        $this->items[] = $found;
        [$this->left, $b] = helper($this->right);
        $found?->parent?->touch(mode: MODE_B);
        if ($found instanceof Special && !DEBUG) {
            throw new \RuntimeException(Errors::LOST);
        }
        echo VERSION;
        switch ($mode) { case QUICK: break; }
        $f = fn($x) => SHIFT;
        $name = Level::$names[INDEX] ?? Order::class;
        \Acme\log($this->clock->now, (NESTED));
        namespace\boot();
        $kind = match ($mode) { FAST => SLOW };
        return $query->any ? YES : Level::of($found);
    }

    abstract protected function close(): void;
}

interface Contract extends Closable { public function close(); }

trait Loggable { public function log() {} }

enum Level: string implements HasLabel
{
    case Low = 'low';
    case High = 'high';
    const DEFAULT = self::Low;

    public function label(): string { return RESULT; }
}

/** Helps. */
function helper(array &$list, Order ...$rest) { return $list; }
"""


def test_definitions_are_found_with_their_qualified_names():
    """Every kind of definition counts; parameters and locals do not."""
    assert read("php", SOURCE).definitions == {
        ("LIMIT", "constant", 7),
        ("OTHER", "constant", 7),
        ("STORE_ROOT", "constant", 8),
        ("registry", "variable", 9),
        ("OrderStore", "class", 13),
        ("OrderStore.MAX", "constant", 17),
        ("OrderStore.first", "field", 18),
        ("OrderStore.last", "field", 18),
        ("OrderStore.opened", "field", 19),
        ("OrderStore.__construct", "method", 22),
        ("OrderStore.__construct.clock", "field", 22),
        ("OrderStore.__construct.page", "field", 22),
        ("OrderStore.find", "method", 31),
        ("OrderStore.close", "method", 51),
        ("Contract", "interface", 54),
        ("Contract.close", "method", 54),
        ("Loggable", "trait", 56),
        ("Loggable.log", "method", 56),
        ("Level", "enum", 58),
        ("Level.Low", "constant", 60),
        ("Level.High", "constant", 61),
        ("Level.DEFAULT", "constant", 62),
        ("Level.label", "method", 64),
        ("helper", "function", 68),
    }


def test_chunks_are_units_with_their_comments():
    """A member is a chunk of its own, its container holds the rest; blank lines are in none."""
    assert read("php", SOURCE).chunks == [
        (1, 9, "toplevel", ""),
        (11, 19, "class", "OrderStore"),
        (21, 28, "method", "OrderStore.__construct"),
        (30, 49, "method", "OrderStore.find"),
        (51, 51, "method", "OrderStore.close"),
        (54, 54, "method", "Contract.close"),
        (56, 56, "method", "Loggable.log"),
        (58, 62, "enum", "Level"),
        (64, 64, "method", "Level.label"),
        (67, 68, "function", "helper"),
    ]


def test_calls_writes_imports_types_and_reads_are_told_apart():
    """Properties are followed; a local variable is not recorded."""
    parsed = read("php", SOURCE)
    assert parsed.uses("helper") == {("call", 36)}
    assert parsed.uses("touch") == {("call", 37)}
    assert parsed.uses("log") == {("call", 45)}
    assert parsed.uses("boot") == {("call", 46)}
    assert parsed.uses("Order") == {
        ("import", 5), ("type", 18), ("type", 31), ("call", 34), ("type", 68)
    }  # fmt: skip
    assert parsed.uses("last") == {("write", 25)}
    assert parsed.uses("opened") == {("write", 26)}
    assert parsed.uses("items") == {("write", 35)}
    assert parsed.uses("left") == {("write", 36)}
    assert parsed.uses("right") == {("read", 36)}
    assert parsed.uses("clock") == {("read", 45)}
    assert parsed.uses("registry") == {("read", 33)}
    assert parsed.uses("Repository") == {("import", 4)}
    assert parsed.uses("Repo") == {("type", 13)}
    assert parsed.uses("Special") == {("type", 38)}
    assert parsed.uses("LIMIT") == {("read", 7)}
    assert parsed.uses("found") == set()
    assert parsed.uses("class") == set()


def test_a_namespace_with_a_body_is_a_unit():
    """One without a body leaves the file as it is."""
    parsed = read("php", "<?php\nnamespace A\\B {\n    class C { function f() {} }\n}\n")
    assert parsed.definitions == {
        ("A\\B", "module", 2),
        ("A\\B.C", "class", 3),
        ("A\\B.C.f", "method", 3),
    }


@pytest.mark.parametrize(
    "statement",
    [
        "f(X);", "f(a: X);", "$a = X;", "$a .= X;", "$a = X + 1;", "$a = !X;", "$a = X ? 1 : 2;",
        "$a = (X);", "$a = [X];", "$a = $b[X];", "const A = X;", "class C { public $a = X; }",
        "function f($a = X) {}", "class C { function __construct(private $a = X) {} }",
        "$a = match ($b) { X => 1 };", "$a = match ($b) { 1 => X };", "$a = fn() => X;",
        "switch ($a) { case X: }", "return X;", "echo X;", "$a = B::X;", "$a = $b->X;",
        "$a = $b?->X;", "$a = B::$X;", "$a = self::X;", "global $X;",
    ],
)  # fmt: skip
def test_a_name_in_value_position_is_read(statement):
    """Wherever a value can stand, a constant or a property there is a read."""
    assert {kind for kind, _ in read("php", f"<?php\n{statement}").uses("X")} == {"read"}


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ("X();", "call"), ("\\A\\X();", "call"), ("namespace\\X();", "call"), ("$a->X();", "call"),
        ("$a?->X();", "call"), ("A::X();", "call"), ("new X();", "call"), ("new \\A\\X();", "call"),
        ("$a->X = 1;", "write"), ("A::$X = 1;", "write"), ("$a->X[] = 1;", "write"),
        ("A::$X[1] = 1;", "write"), ("[$a->X] = $b;", "write"), ("$a->X .= 1;", "write"),
        ("A::$X .= 1;", "write"), ("$a->X++;", "write"), ("--A::$X;", "write"),
        ("use A\\X;", "import"), ("use X;", "import"), ("use A\\{X, B};", "import"),
        ("X::f();", "type"), ("A\\X::f();", "type"), ("X::$a;", "type"), ("A\\X::$a;", "type"),
        ("X::B;", "type"), ("A\\X::B;", "type"), ("$a instanceof X;", "type"),
        ("$a instanceof A\\X;", "type"), ("class C extends X {}", "type"),
        ("class C extends A\\X {}", "type"), ("class C implements X {}", "type"),
        ("class C implements A\\X {}", "type"), ("class C { use X; }", "type"),
        ("class C { use A\\X; }", "type"), ("#[X] class C {}", "type"),
        ("#[A\\X] class C {}", "type"), ("function f(X $a) {}", "type"),
        ("function f(A\\X $a) {}", "type"),
    ],
)  # fmt: skip
def test_other_uses_of_a_name(statement, kind):
    """Creating is a call; assigning, appending and counting are writes."""
    assert {found for found, _ in read("php", f"<?php\n{statement}").uses("X")} == {kind}
