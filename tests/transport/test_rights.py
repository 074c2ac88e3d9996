"""Logins with few rights, as `docs/servers.md` gives them: enough, and what is missing is named."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

from rqueue import errors
from rqueue.client._sync.queue import Queue
from rqueue.embedded.server import EmbeddedRedis
from rqueue.inspector import Inspector
from rqueue.protocol import commands
from rqueue.protocol.scripts import SCRIPTS
from rqueue.tasks.options import Options
from rqueue.testing import frozen_time
from rqueue.transport.redis_client import execute
from rqueue_workers.exit_codes import Exit
from tests.support.command_line import invoke
from tests.support.patience import PATIENCE
from tests.workers.pools import Pool

DOCUMENTED = Path(__file__).resolve().parents[2] / "docs/servers.md"
PASSWORD = "pw"
NOOP = "rqueue.noop"


def documented(name: str) -> str:
    """The rule of a user in the page, as `ACL SETUSER name ...`."""
    found = re.search(rf"^ACL SETUSER {name} (.*)$", DOCUMENTED.read_text(), re.MULTILINE)
    assert found, f"the page has no rule for {name}"
    return found[1].replace(">PASSWORD", f">{PASSWORD}")


@pytest.fixture
def make_user(private_server: EmbeddedRedis) -> Iterator[Callable[[str, str], str]]:
    """Makes a user of some rights on a server of this test; its URL."""
    with redis.Redis.from_url(private_server.url) as client:

        def make(name: str, rules: str) -> str:
            client.execute_command("ACL", "SETUSER", name, "reset", *rules.split())
            return str(private_server.tcp_url).replace("redis://", f"redis://{name}:{PASSWORD}@")

        yield make


MakeUser = Callable[[str, str], str]


@pytest.mark.each_server
def test_documented_rights_are_enough_for_a_client(make_user: MakeUser) -> None:
    url = make_user("rqueue-client", documented("rqueue-client"))
    with Queue("q", url) as queue, queue.putter() as putter:
        job = queue.send("t")
        queue.enqueue_many([])
        putter.put("t").wait_stored(PATIENCE)
        with pytest.raises(errors.ResultTimeout):
            job.result(0.05)
        assert job.cancel()
        assert queue.pause()
        assert queue.resume()
        queue.configure(max_deliveries=5)
        assert queue.counts().ready == 1
        with queue.consumer(jobs=5) as consumer:
            (held,) = consumer.pull()
            assert consumer.wait(0.01) == []
            assert consumer.ack(held, "found")
        with frozen_time(queue) as time:
            assert time.move(5) == time.now


@pytest.mark.each_server
def test_documented_rights_are_enough_for_a_pool(
    make_user: MakeUser, make_pool: Callable[..., Pool], private_server: EmbeddedRedis
) -> None:
    url = make_user("rqueue-worker", documented("rqueue-worker"))
    pool = make_pool(url, queues=["q"], app=["rqueue.cli.noop"])
    with Queue("q", private_server.url) as queue:
        assert queue.send(NOOP).result(PATIENCE) is None
        failing = queue.send(NOOP, kwargs={"no": 1}, options=Options(max_deliveries=1))
        with pytest.raises(errors.JobFailed):
            failing.result(PATIENCE)
    assert pool.drained() == Exit.OK
    assert "Redis is gone" not in pool.log


@pytest.mark.each_server
def test_documented_rights_are_enough_for_an_inspector(
    make_user: MakeUser, private_server: EmbeddedRedis
) -> None:
    with Queue("q", private_server.url) as queue:
        queue.send("t", options=Options(id="x"))
    url = make_user("rqueue-inspector", documented("rqueue-inspector"))
    _look(url)
    invoke("--url", url, "pause", "q")
    invoke("--url", url, "cancel", "x", "-q", "q", "--yes")


@pytest.mark.each_server
def test_a_viewer_may_look_and_change_nothing(
    make_user: MakeUser, private_server: EmbeddedRedis
) -> None:
    with Queue("q", private_server.url) as queue:
        queue.send("t", options=Options(id="x"))
        url = make_user("rqueue-viewer", documented("rqueue-viewer"))
        _look(url)
        before = queue.redis.dump(queue.keys.meta)
        said = invoke("--url", url, "pause", "q", code=4).output
        assert "lacks a right that the step 'pause' needs" in said or "may not run" in said
        assert queue.redis.dump(queue.keys.meta) == before


LOGINS = ("rqueue-client", "rqueue-worker", "rqueue-inspector", "rqueue-viewer")
NEEDED = {"info", "evalsha", "script|load"}
"""Commands of the classes below that the logins have all the same."""

# fmt: off
REFUSED = {
    "acl|list", "acl|setuser", "bgrewriteaof", "bgsave", "client|kill", "client|list",
    "client|pause", "cluster|reset", "config|get", "config|set", "debug|sleep", "eval", "eval_ro",
    "evalsha_ro", "failover", "fcall", "fcall_ro", "flushall", "flushdb", "function|delete",
    "function|flush", "function|load", "function|restore", "keys", "latency|reset", "migrate",
    "module|load", "monitor", "psubscribe", "psync", "publish", "replicaof", "restore", "save",
    "script|flush", "script|kill", "shutdown", "slaveof", "slowlog|reset", "sort", "spublish",
    "ssubscribe", "subscribe", "swapdb", "sync",
}
# fmt: on
"""Commands that no login may run, whatever their server calls them."""


@pytest.mark.each_server
@pytest.mark.parametrize("login", LOGINS)
def test_what_documented_logins_must_not_run(
    make_user: MakeUser, private_server: EmbeddedRedis, login: str
) -> None:
    url = make_user(login, documented(login))
    with (
        redis.Redis.from_url(private_server.tcp_url, decode_responses=True) as client,
        redis.Redis.from_url(url, decode_responses=True) as limited,
    ):
        known = client.execute_command("COMMAND")
        classes = ["admin", "dangerous", "scripting", "pubsub"]
        classes += ["write"] if login == "rqueue-viewer" else []
        forbidden = REFUSED.union(*(client.execute_command("ACL CAT", one) for one in classes))
        forbidden -= NEEDED | {"script"}
        allowed = []
        for command in sorted(forbidden):
            name, _, sub = command.partition("|")
            if name not in known:
                continue  # this server is older
            words = [name, *([sub] if sub else [])]
            padding = range(abs(known[name]["arity"]) - len(words), 8)
            answers = (_answer(limited, [*words, *["rqueue:x"] * max(n, 0)]) for n in padding)
            said = next(one for one in answers if "wrong number" not in one)
            if not re.search("no permission|not allowed|unknown", said, re.IGNORECASE):
                allowed.append(f"{command}: {said}")
        assert not allowed


def _answer(client: redis.Redis, words: list[str]) -> str:
    try:
        return str(client.execute_command(*words))
    except redis.exceptions.NoPermissionError:
        return "no permission"
    except redis.exceptions.ResponseError as error:
        return str(error)


def _look(url: str) -> None:
    for command in (
        ["queues"], ["queues", "q"], ["stats", "q", "--interval", "10ms"], ["jobs", "q"],
        ["show", "x"], ["consumers", "q"], ["history", "q"], ["dead", "list", "q"], ["doctor"],
    ):  # fmt: skip
        invoke("--url", url, *command)


@pytest.mark.parametrize(
    ("rules", "missing"),
    [
        ("on >pw ~other:* &* +@all", "may not touch"),
        ("on >pw ~rqueue:* &* +@all -evalsha -eval", "'evalsha'"),
        ("on >pw ~rqueue:* &* +@all -xadd", "+xadd"),
        ("on >pw ~rqueue:* &* +@all -hset -zadd", "+zadd +hset"),
        ("on >pw ~rqueue:* &* +@all -append", "+append"),
        ("on >pw ~rqueue:* &* +@all -del", "ACL SETUSER app +del"),
        ("on >pw ~rqueue:* &* +@all -unlink", "ACL SETUSER app +unlink"),
        ("on >pw ~rqueue:* &* +@all -blpop", "ACL SETUSER app +blpop"),
        ("on >pw ~rqueue:* &* +@all -info", "'info'"),
        ("off >pw ~rqueue:* &* +@all", "put the right user and password into the URL"),
    ],
)
@pytest.mark.each_server
def test_a_login_without_a_right_ends_the_pool_and_names_it(
    make_user: MakeUser, make_pool: Callable[..., Pool], rules: str, missing: str
) -> None:
    pool = make_pool(make_user("app", rules), queues=["q"])
    assert pool.ended() == Exit.REDIS
    (line,) = [line for line in pool.log.splitlines() if " ERROR " in line]
    assert missing in line
    assert "pw@" not in pool.log


@pytest.mark.each_server
def test_a_login_that_may_not_teach_scripts_ends_the_pool_though_the_server_knows_them(
    make_user: MakeUser, make_pool: Callable[..., Pool], private_server: EmbeddedRedis
) -> None:
    with Inspector(private_server.url) as inspector:
        execute(inspector.redis, commands.check_rights(inspector.keys("q")))
    rules = "on >pw ~rqueue:* &* +@all -script -hset"
    pool = make_pool(make_user("app", rules), queues=["q"])
    assert pool.ended() == Exit.REDIS
    assert "ACL SETUSER app +script|load +hset" in pool.log


WRITES = (
    "del unlink append lpop rpop hdel srem zrem lpush rpush sadd lrem lset ltrim zremrangebyrank "
    "zadd hset hsetnx hincrby linsert xadd xdel pexpire rename"
)


@pytest.mark.each_server
def test_all_rights_that_a_login_lacks_are_named_at_once(
    make_user: MakeUser, make_pool: Callable[..., Pool], private_server: EmbeddedRedis
) -> None:
    url = make_user("app", f"on >{PASSWORD} ~rqueue:* &* +@all -@write -script")
    with Inspector(private_server.url) as inspector:  # what tries the others is a script itself
        execute(inspector.redis, commands.check_rights(inspector.keys("q")))
    pool = make_pool(url, queues=["q"])
    assert pool.ended() == Exit.REDIS
    (said,) = re.findall("ACL SETUSER app (.*?)(?: [(].*)?$", pool.log, re.MULTILINE)
    assert said.split() == ["+script|load", *(f"+{right}" for right in WRITES.split()), "+blpop"]
    with Inspector(private_server.url) as inspector:
        assert inspector.redis.keys("*") == []
        inspector.redis.execute_command("ACL", "SETUSER", "app", *said.split())
    second = make_pool(url, queues=["q"], app=["rqueue.cli.noop"])
    with Queue("q", private_server.url) as queue:
        assert queue.send(NOOP).result(PATIENCE) is None
    assert second.drained() == Exit.OK


def test_every_command_of_the_scripts_is_tried() -> None:
    called = re.compile(r"redis\.call\('([A-Z]+)'|local push = .*'([A-Z]+)'.*'([A-Z]+)'")
    used: set[str] = set()
    for name in SCRIPTS.names():
        if name != "check_rights":
            used |= {
                word for found in called.findall(SCRIPTS.script(name).source) for word in found
            }
    tried = set(re.findall(r"'([A-Z]{3,})'", SCRIPTS.script("check_rights").source))
    assert used - {""} <= tried


@pytest.mark.each_server
def test_a_trial_leaves_nothing_behind(private_server: EmbeddedRedis) -> None:
    with Inspector(private_server.url) as inspector:
        assert execute(inspector.redis, commands.check_rights(inspector.keys("q"))) == []
        assert inspector.redis.keys("*") == []
