"""What the C query file finds."""

import pytest

from tests.languages.reading import read

SOURCE = r"""
/* A queue of jobs. */
#define QUEUE_INTERNAL_H
#include <stdint.h>
#include "alloc/pool.h"

#define QUEUE_MAX 64
#define ROUND_UP(n, to) \
    (((n) + (to) - 1) / (to))

typedef uint32_t job_id;
typedef int (*job_fn)(void *, size_t);
typedef struct pool pool;

/* One job. */
typedef struct job {
    struct job *next;
    char name[QUEUE_MAX], **args;
    void (*run)(struct job *);
    void *(*copy)(const void *);
    unsigned state:3;
} job;

typedef struct _queue {
    job *head, *tail;
} queue;

typedef struct { int x, y; } point;

enum job_state { JOB_NEW, JOB_DONE = QUEUE_MAX };

typedef enum { LOW, HIGH } level;

typedef enum kind_tag { FAST } kind;

union value {
    long number;
    struct { char *data; } text;
};

/* Counts what was run. */
struct stats { int runs; } totals;

enum mode { IDLE } current_mode;

extern int queue_debug;
static int counter = 0, limits[QUEUE_MAX], *cursor;
static const char *names[] = { [JOB_NEW] = "new", last_name };
static job_fn handler = default_handler;
job *queue_pop(queue *q);

#ifdef QUEUE_STATS
static int samples = JOB_DONE;
#endif

// Finds a job.
static inline job *queue_find(queue *q, const char *name, job_id id)
{
    for (job *j = q->head; j; j = j->next) {
        if (!match(j->name, name) || id > limit)
            continue;
        q->tail->state = pending;
        q->head->refs++;
        counter += step;
        return found ? j : fallback;
    }
    point p = { .x = origin };
    size_t at = offsetof(struct stats, runs);
    (*handler)((void *)raw, &shared);
    table[index] = (a, b);
    return NULL;
}

char **queue_names(void) { return names_of; }

int (*queue_handler(int kind))(void *, size_t)
{
    switch (kind) {
    case JOB_DONE: return handler;
    }
}

DEFINE_COMMAND(flush)
{
    q.run(q.head);
}

#if defined(HAVE_FORK)
char ***deep(void) { return 0; }
#endif
"""


def test_definitions_are_found_with_their_qualified_names():
    """Every kind of definition counts; parameters and locals do not."""
    assert read("c", SOURCE).definitions == {
        ("QUEUE_MAX", "constant", 6),
        ("ROUND_UP", "macro", 7),
        ("job_id", "type", 10),
        ("job_fn", "type", 11),
        ("pool", "type", 12),
        ("job", "struct", 15),
        ("job.next", "field", 16),
        ("job.args", "field", 17),
        ("job.name", "field", 17),
        ("job.run", "field", 18),
        ("job.copy", "field", 19),
        ("job.state", "field", 20),
        ("_queue", "struct", 23),
        ("_queue.queue.head", "field", 24),
        ("_queue.queue.tail", "field", 24),
        ("_queue.queue", "struct", 25),
        ("point", "struct", 27),
        ("point.x", "field", 27),
        ("point.y", "field", 27),
        ("job_state", "enum", 29),
        ("job_state.JOB_DONE", "constant", 29),
        ("job_state.JOB_NEW", "constant", 29),
        ("level", "enum", 31),
        ("level.HIGH", "constant", 31),
        ("level.LOW", "constant", 31),
        ("kind_tag", "enum", 33),
        ("kind_tag.kind", "enum", 33),
        ("kind_tag.kind.FAST", "constant", 33),
        ("value", "struct", 35),
        ("value.number", "field", 36),
        ("value.data", "field", 37),
        ("value.text", "field", 37),
        ("stats", "struct", 41),
        ("stats.runs", "field", 41),
        ("stats.totals", "variable", 41),
        ("mode", "enum", 43),
        ("mode.IDLE", "constant", 43),
        ("mode.current_mode", "variable", 43),
        ("counter", "variable", 46),
        ("cursor", "variable", 46),
        ("limits", "variable", 46),
        ("names", "variable", 47),
        ("handler", "variable", 48),
        ("samples", "variable", 52),
        ("queue_find", "function", 56),
        ("queue_names", "function", 73),
        ("queue_handler", "function", 75),
        ("flush", "function", 82),
        ("deep", "function", 88),
    }


def test_chunks_are_units_with_their_comments():
    """A member is a chunk of its own, its container holds the rest; blank lines are in none."""
    assert read("c", SOURCE).chunks == [
        (1, 6, "toplevel", ""),
        (7, 8, "macro", "ROUND_UP"),
        (10, 10, "type", "job_id"),
        (11, 11, "type", "job_fn"),
        (12, 12, "type", "pool"),
        (14, 21, "struct", "job"),
        (23, 25, "struct", "_queue.queue"),
        (27, 27, "struct", "point"),
        (29, 29, "enum", "job_state"),
        (31, 31, "enum", "level"),
        (33, 33, "enum", "kind_tag.kind"),
        (35, 38, "struct", "value"),
        (40, 41, "struct", "stats"),
        (43, 43, "enum", "mode"),
        (45, 53, "toplevel", ""),
        (55, 71, "function", "queue_find"),
        (73, 73, "function", "queue_names"),
        (75, 80, "function", "queue_handler"),
        (82, 85, "function", "flush"),
        (87, 87, "toplevel", ""),
        (88, 88, "function", "deep"),
        (89, 89, "toplevel", ""),
    ]


@pytest.mark.parametrize(
    ("source", "definition"),
    [
        ("int f(void) {}", ("f", "function")),
        ("a_t *f(void) {}", ("f", "function")),
        ("a_t **f(void) {}", ("f", "function")),
        ("a_t ***f(void) {}", ("f", "function")),
        ("int (*f(int a))(int) {}", ("f", "function")),
        ("static void EXPORT f(void) {}", ("f", "function")),
        ("COMMAND(f) {}", ("f", "function")),
        ("union u { int a; };", ("u", "struct")),
        ("typedef union u { int a; } u;", ("u", "struct")),
        ("typedef union u_ { int a; } u;", ("u_.u", "struct")),
        ("typedef union { int a; } u;", ("u", "struct")),
        ("union u { int a; } v;", ("u", "struct")),
        ("enum e { A } v;", ("e", "enum")),
        ("typedef enum e { A } e;", ("e", "enum")),
        ("typedef enum e e_t;", ("e_t", "type")),
        ("typedef union u u_t;", ("u_t", "type")),
        ("typedef unsigned long t;", ("t", "type")),
        ("typedef a_t t;", ("t", "type")),
        ("typedef CAT(a, b) t;", ("t", "type")),
        ("typedef a_t *t;", ("t", "type")),
        ("typedef a_t t[4];", ("t", "type")),
        ("typedef int t(int);", ("t", "type")),
        ("typedef unsigned int uint32_t;", ("uint32_t", "type")),
        ("struct s { int m[2][2]; };", ("s.m", "field")),
        ("struct s { a_t *m[2]; };", ("s.m", "field")),
        ("int v;", ("v", "variable")),
        ("int v[2];", ("v", "variable")),
        ("int *v;", ("v", "variable")),
        ("int v[] = {1};", ("v", "variable")),
        ("int v[][2] = {1};", ("v", "variable")),
        ("int *v = 0;", ("v", "variable")),
        ("int (*v)(int) = f;", ("v", "variable")),
        ("#ifdef A\nint v;\n#endif", ("v", "variable")),
        ("#ifdef A\nint *v;\n#endif", ("v", "variable")),
        ("#ifdef A\nint v[2];\n#endif", ("v", "variable")),
        ("#ifdef A\nint v[] = {1};\n#endif", ("v", "variable")),
        ("#ifdef A\nint *v = 0;\n#endif", ("v", "variable")),
        ("#ifdef A\nchar *v[] = {0};\n#endif", ("v", "variable")),
    ],
)
def test_a_declarator_may_be_wrapped(source, definition):
    """Pointers, arrays and macros around a name do not hide its definition."""
    assert definition in {(name, kind) for name, kind, _ in read("c", source).definitions}


@pytest.mark.parametrize(
    "source",
    ["extern int v;", "int f(int a);", "struct s;", "#define A_H", "void f(int); "],
)
def test_a_declaration_defines_nothing(source):
    """Prototypes, extern variables and include guards are left out."""
    assert read("c", source).definitions == set()


def test_calls_writes_imports_types_and_reads_are_told_apart():
    """Fields are followed through both kinds of access and in initialisers."""
    parsed = read("c", SOURCE)
    assert parsed.uses("match") == {("call", 59)}
    assert parsed.uses("run") == {("call", 84)}
    assert parsed.uses("handler") == {("call", 68), ("read", 78)}
    assert parsed.uses("head") == {("read", 58), ("read", 84)}
    assert parsed.uses("refs") == {("write", 62)}
    assert parsed.uses("state") == {("write", 61)}
    assert parsed.uses("counter") == {("write", 63)}
    assert parsed.uses("x") == {("write", 66)}
    assert parsed.uses("runs") == {("read", 67)}
    assert parsed.uses("job_id") == {("type", 56)}
    assert parsed.uses("alloc/pool.h") == {("import", 4)}
    assert parsed.uses("stdint.h") == {("import", 3)}
    assert parsed.uses("QUEUE_STATS") == {("read", 51)}
    assert parsed.uses("HAVE_FORK") == {("read", 87)}


@pytest.mark.parametrize(
    "statement",
    [
        "f(x);", "a = x->b;", "a = b->x;", "a = b + x;", "a = !x;", "a = &x;", "a = x ? b : c;",
        "if (x) {}", "a = (b, x);", "a = (b_t)x;", "a = b[x];", "a = x;", "int a = x;",
        "int a[] = {x};", "b_t a = {.c = x};", "int a[] = {[x] = 1};", "int a[x];",
        "enum { A = x };", "return x;", "switch (a) { case x: break; }",
    ],
)  # fmt: skip
def test_a_name_in_value_position_is_read(statement):
    """Wherever a value can stand, a plain name there is a read."""
    uses = read("c", f"void m(void) {{ {statement} }}").uses("x")
    assert {kind for kind, _ in uses} == {"read"}


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ("(*x)(a);", "call"), ("(*a->x)(b);", "call"), ("a.x(b);", "call"), ("x = 1;", "write"),
        ("a->x += 1;", "write"), ("++x;", "write"), ("a.x--;", "write"),
        ("struct x *a;", "type"), ("a = sizeof(union x);", "type"), ("enum x a;", "type"),
    ],
)  # fmt: skip
def test_other_uses_of_a_name(statement, kind):
    """Calling through a pointer is a call; assigning and counting are writes."""
    uses = read("c", f"void m(void) {{ {statement} }}").uses("x")
    assert {found for found, _ in uses} == {kind}
