"""Tests of the test: faults planted in the policy of unique jobs, and where it is asked, are
found."""

import redis

from tests.property.planted import (
    HEAR,
    NEXT,
    PULL,
    Fault,
    Step,
    begin,
    each,
    is_found,
    pass_time,
    retry_later,
    settle,
)
from tests.property.unique import UniqueMachine

POLICY = "policies/unique.lua"
INSTEAD = "policies/unique/instead.lua"
DONE, OWNED, REPLACE, RIVAL, TAKEN, UPKEEP = (
    f"policies/unique/{hook}.lua"
    for hook in ("done", "owned", "replace", "rival", "taken", "upkeep")
)


def put(*uniques: str, delay: int = 0, padding: int = 0) -> Step:
    """Unique jobs, enqueued together; each has one more byte of arguments than the one before."""
    jobs = [((4, delay, padding + n, 0, 1), unique) for n, unique in enumerate(uniques)]
    return "enqueue_unique", {"jobs": jobs, "immediate": False}


def commit(outcome: str, *keys: str, padding: int = 0) -> Step:
    """The first consumer settles its first job, and jobs of these keys follow; with a padding they
    replace others."""
    jobs = [(4, 0, padding, key) for key in keys]
    said = {"outcomes": [(0, outcome)], "jobs": jobs, "foreign": False}
    return "commit", {"pick": 0, **said}


CANCEL = ("cancel", {"pick": 0, "held": True})
DIES = ("leave", {"pick": 0, "dies": True, "charged": [0]})
REQUEUE = ("dead_letters", {"chosen": [0], "live": True})
ONE, NOBODY = begin((1, 0)), begin((0, 0))

FAULTS = [
    Fault(
        "another one is stored too",
        INSTEAD,
        "if not state then\n      own[job.key] = job",
        "if true then\n      own[job.key] = job",
        (NOBODY, put("ex:a"), put("ex:a")),
    ),
    Fault(
        "of a batch both are stored",
        INSTEAD,
        "      own[job.key] = job\n",
        "",
        (NOBODY, put("ex:a", "ex:a")),
    ),
    Fault(
        "who is to be refused is answered",
        INSTEAD,
        "elseif job.answer == 'f' then",
        "elseif false then",
        (NOBODY, put("ex:a"), put("ef:a")),
    ),
    Fault(
        "what is stored has no key",
        "include/enqueue/entry.lua",
        "    --- @each owned(base, now, step.uniques.index, taker)\n",
        "",
        (NOBODY, put("ex:a")),
    ),
    Fault(
        "a job that is done keeps its key",
        "include/settle/outcomes.lua",
        "    --- @each done(base, queue, gone, said, arguments)\n",
        "",
        (ONE, put("ex:a"), HEAR, settle("ack")),
    ),
    Fault(
        "a job that is done keeps its key behind a fast path",
        POLICY,
        "--- FAST: no",
        "--- FAST: yes",
        (ONE, put("ex:a"), HEAR, NEXT, put("ex:a"), HEAR, NEXT),
    ),
    Fault(
        "a dead letter keeps its key",
        "include/finish/unfinished.lua",
        "    --- @each pass(base, queue, batch.gone)\n",
        "",
        (ONE, put("ex:a"), HEAR, settle("reject")),
    ),
    Fault(
        "a cancelled job keeps its key",
        "cancel.lua",
        "--- @each pass(base, queue, { job })\n",
        "",
        (NOBODY, put("ex:a"), CANCEL),
    ),
    Fault(
        "a purged job keeps its key",
        "include/finish/end.lua",
        "  --- @each pass(base, queue, gone)\n",
        "",
        (NOBODY, put("ex:a", "", ""), ("purge", {"scheduled": True, "limit": 500})),
    ),
    Fault(
        "a key that is another one's by now is freed",
        POLICY,
        "if owners[i] == job.id then",
        "if owners[i] then",
        (begin((1, 0), (1, 0)), put("sx:a"), HEAR, put("sx:a"), HEAR, put("sx:a"), settle("ack")),
    ),
    Fault(
        "one that is taken keeps its key",
        TAKEN,
        "if its and its.lasts == 's' then\n      its.id",
        "if false then\n      its.id",
        (
            NOBODY,
            put("sx:a"),
            (
                "join",
                {
                    "mode": "acquire",
                    "priority": 0,
                    "window": (1, 0),
                    "slots": 1,
                    "lease": 6000,
                },
            ),
            ("pull", {"pick": 1, "window": None, "recall": False}),
        ),
    ),
    Fault(
        "one that is delivered directly keeps its key",
        OWNED,
        "if not (taken and job.lasts == 's') then",
        "if true then",
        (ONE, put("sx:a")),
    ),
    Fault(
        "one that comes back has no key",
        "include/finish/unfinished.lua",
        "  --- @each kept(base, job)\n",
        "",
        (ONE, put("sx:a"), HEAR, settle("release")),
    ),
    Fault(
        "one that comes back takes the key of a newer one",
        POLICY,
        "'HSETNX'",
        "'HSET'",
        (begin((1, 0)), put("sx:a"), HEAR, put("sx:a"), settle("release")),
    ),
    Fault(
        "who dies leaves the key of a job that crashed behind",
        "include/finish/unfinished.lua",
        "  --- @each kept(base, job)\n",
        "",
        (ONE, put("sx:a"), HEAR, DIES),
    ),
    Fault(
        "a dead letter that lives again takes the key of a newer one",
        RIVAL,
        "not value and period and tonumber(period) > now then return owner end",
        "not value and period and tonumber(period) > now then owner = nil end",
        (begin((1, 0), (0, 0)), put("ex:a"), HEAR, settle("reject"), put("ex:a"), REQUEUE),
    ),
    Fault(
        "a dead letter that lives again has no key",
        RIVAL,
        "  redis.call('HSET', base .. 'unique', its.key, job.id)\n",
        "",
        (ONE, put("ex:a"), HEAR, settle("reject"), REQUEUE),
    ),
    Fault(
        "a period is over when the job is done",
        DONE,
        "unique_free(base, jobs, queue.now)",
        "unique_free(base, jobs)",
        (ONE, put("3000x:a"), HEAR, settle("ack")),
    ),
    Fault(
        "a period goes on behind a dead letter",
        POLICY,
        "period and until_ and tonumber(period) > until_",
        "period",
        (ONE, put("3000x:a"), HEAR, settle("reject")),
    ),
    Fault(
        "a period that is over frees the key of a job that lives",
        UPKEEP,
        "if not its or its.key ~= key then free",
        "if true then free",
        (ONE, put("800x:a"), HEAR, pass_time(900), ("renew", {"names": []})),
    ),
    Fault(
        "a period that is over stays",
        UPKEEP,
        "if #free > 0 then redis.call('HDEL', base .. 'unique', unpack(free)) end",
        "",
        (ONE, put("800x:a"), HEAR, settle("ack"), pass_time(900), ("renew", {"names": []})),
    ),
    Fault(
        "a job that follows itself is answered by itself",
        "commit.lua",
        "  arguments.over = ending\n",
        "",
        (ONE, put("ex:a"), HEAR, commit("ack", "a")),
    ),
    Fault(
        "a job that follows one that comes back is stored",
        "commit.lua",
        "ending[id] = not fate and 'done' or fate and fate.verb == 'reject' and 'dead' or nil",
        "ending[id] = 'dead'",
        (ONE, put("ex:a"), HEAR, commit("release", "a")),
    ),
    Fault(
        "a job that waits keeps the older arguments",
        REPLACE,
        "redis.call('HSET', base .. 'jobs', one.id, header .. envelope)",
        "",
        (NOBODY, put("sr:a"), put("sr:a", padding=1)),
    ),
    Fault(
        "of a batch the first arguments count",
        "include/enqueue/owners.lua",
        "if one.over then",
        "if false then",
        (NOBODY, put("sr:a", "sr:a")),
    ),
    Fault(
        "a transaction replaces nothing",
        "enqueue.lua",
        "  owners_replace(step)\n",
        "",
        (ONE, put("ex:b"), HEAR, put("sr:a"), commit("ack", "a", padding=1)),
    ),
    Fault(
        "what is taken gets other arguments",
        INSTEAD,
        "if replaces and (state == 'held' or state == 'done') then",
        "if false then",
        (ONE, put("ex:a"), HEAR, put("sr:a", padding=1)),
    ),
    Fault(
        "a call puts nothing off",
        REPLACE,
        "if one.due then",
        "if false then",
        (NOBODY, put("sd:a", delay=800), pass_time(100), put("sd:a", delay=800)),
    ),
    Fault(
        "calls put off for ever",
        INSTEAD,
        "job.most > 0 and math.min(job.due, other.enqueued + job.most) or job.due",
        "job.due",
        (NOBODY, put("sd1000:a", delay=800), pass_time(500), put("sd1000:a", delay=800)),
    ),
    Fault(
        "a call puts a retry off",
        INSTEAD,
        "and other.deliveries + other.attempts == 0\n",
        "\n",
        (ONE, put("sr:a"), HEAR, retry_later("head"), pass_time(100), put("sd:a", delay=800)),
    ),
    Fault(
        "who watches hears of no earlier time",
        REPLACE,
        "if sooner and not how.paused then",
        "if false then",
        (ONE, put("sd:a", delay=800), PULL, pass_time(100), put("sd:a", delay=5)),
    ),
    Fault(
        "what follows does not wait for the end of the period",
        INSTEAD,
        "        job.run.due = job.due\n",
        "",
        (ONE, put("900t:a"), HEAR, put("900t:a")),
    ),
    Fault(
        "the period of what follows begins with its enqueue",
        OWNED,
        "job.answer == 't' and math.max(now, job.due) or now",
        "now",
        (ONE, put("900t:a"), HEAR, put("900t:a")),
    ),
    Fault(
        "a period keeps others away that is over",
        INSTEAD,
        "period = period and period > how.now and period",
        "period = period",
        (ONE, put("800t:a"), HEAR, pass_time(900), put("800t:a")),
    ),
]


@each(FAULTS)
def test_a_fault_is_found(fault: Fault, client: redis.Redis) -> None:
    is_found(fault, client, UniqueMachine)
