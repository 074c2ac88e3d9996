"""Dependencies: what is an argument and what is not, and what cannot be resolved."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any

import fastapi
import pytest

from rqueue.errors import BadArguments, ConfigError
from rqueue.tasks.context import JobContext
from rqueue.tasks.decorator import task
from rqueue.tasks.dependencies import JOB, Provider, Resource, plan
from rqueue.tasks.depends import Depends
from rqueue.tasks.registry import Registry
from rqueue_workers.worker.composing import composed


class Pool: ...


def pool() -> Pool:
    return Pool()


def session(of: Annotated[Pool, Depends(pool)], job: JobContext, size: int = 5) -> Iterator[Pool]:
    yield of


Session = Annotated[Pool, Depends(session)]


def made(function: Any) -> Any:
    return task(name="t", registry=Registry())(function)


def test_a_dependency_is_no_argument() -> None:
    def work(a: int, s: "Session", *, p: Pool = Depends(pool), b: int = 0) -> None: ...

    found = made(work)
    found.check((1,), {"b": 2})
    assert found.check.positional == ("a",)
    for args, kwargs in (((1, 2), {}), ((1,), {"p": 3}), ((1,), {"s": 3})):
        with pytest.raises(BadArguments, match=r"takes \(a: int, \*, b: int = 0\)"):
            found.check(args, kwargs)


def test_a_plan() -> None:
    def work(s: Session, p: Pool = Depends(), f: Any = Depends(pool, scope="process")) -> None: ...

    (s, one), (p, resource), (f, kept) = plan("t", work)
    assert (s, p, f) == ("s", "p", "f")
    assert isinstance(one, Provider) and (one.kind, one.scope, one.name) == (
        "gen",
        "job",
        "session",
    )
    (of, inner), (job, context) = one.needs
    assert (of, job, context) == ("of", "job", JOB)
    assert isinstance(inner, Provider) and inner.call is pool
    assert resource == Resource(Pool, "'p' of " + work.__qualname__)
    assert isinstance(kept, Provider) and kept.scope == "process"


def test_those_of_fastapi_are_taken() -> None:
    class Settings: ...

    def work(
        a: Annotated[Pool, fastapi.Depends(pool)],
        b: Settings = fastapi.Depends(),
        c: Pool = fastapi.Depends(pool, use_cache=False),
    ) -> None: ...

    made(work).check((), {})
    (_, a), (_, b), (_, c) = plan("t", work)
    assert isinstance(a, Provider) and isinstance(b, Provider) and isinstance(c, Provider)
    assert (a.call, b.call, a.use_cache, c.use_cache) == (pool, Settings, True, False)


def of_request(request: fastapi.Request) -> None: ...
def of_query(q: str = fastapi.Query("x")) -> None: ...
def of_path(item: int) -> None: ...
def itself(me: Any = None) -> None: ...


itself.__defaults__ = (Depends(itself),)


def of_one_job(job: JobContext) -> None: ...
async def awaited() -> None: ...
async def agen() -> AsyncIterator[None]:
    yield


@pytest.mark.parametrize(
    ("call", "options", "said"),
    [
        (of_request, {}, "of_request needs the Request of a request ('request'), and a job has n"),
        (of_query, {}, "'q' of of_query comes from a request"),
        (of_path, {}, "nobody gives 'item' of of_path: it has no Depends"),
        (itself, {}, "itself depends on itself"),
        (of_one_job, {"scope": "process"}, "of the process, and depends on the job, of one job"),
        (session, {"scope": "process"}, "of the process, and depends on pool, of one job"),
        (
            awaited,
            {},
            "cannot await 'awaited': make the task async, or the dependency one of the p",
        ),
        (agen, {}, "cannot await 'agen'"),
    ],
)
def test_what_cannot_be_resolved_is_refused_by_name(
    call: Any, options: dict[str, Any], said: str
) -> None:
    def work(d: Any = Depends(call, **options)) -> None: ...

    with pytest.raises(ConfigError) as caught:
        composed(made(work), (), (), {})
    assert str(caught.value).startswith("Depends: task 't'")
    assert said in str(caught.value)


def test_a_resource_without_a_type() -> None:
    def work(d=Depends()) -> None: ...  # type: ignore[no-untyped-def]

    with pytest.raises(ConfigError, match="asks for a resource, and its type is not known here"):
        plan("t", work)


def test_dependencies_stand_behind_the_arguments() -> None:
    def work(p: Session, a: int = 0) -> None: ...

    with pytest.raises(ConfigError, match="stands behind the arguments, and 'a' stands behind 'p'"):
        made(work)


def test_depends_itself() -> None:
    with pytest.raises(ConfigError, match="5 is no function"):
        Depends(5)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="scope 'request' is neither 'job' nor 'process'"):
        Depends(pool, scope="request")  # type: ignore[arg-type]


def test_a_plain_call_does_not_pass_a_marker_on() -> None:
    """What a worker fills is passed by name, where nobody fills it."""

    def session() -> str:
        return "a session"

    @task(name="charge", registry=Registry())
    def charge(order: int, *, db: str = Depends(session), log: str = Depends(session)) -> str:
        return f"{order} by {db}"

    @task(name="acharge", registry=Registry())
    async def acharge(order: int, db: str = Depends(session)) -> str:
        return f"{order} by {db}"

    said = "a worker fills db, log, and a plain call does not: pass db=..., log=..."
    with pytest.raises(BadArguments) as caught:
        charge(7)
    assert str(caught.value).startswith(said)
    with pytest.raises(BadArguments, match="a worker fills log, "):
        charge(7, db="mine")
    with pytest.raises(BadArguments, match="a worker fills db, "):
        acharge(7)
    assert charge(7, db="mine", log="") == "7 by mine"
    assert asyncio.run(acharge(7, "mine")) == "7 by mine"
    with pytest.raises(TypeError, match="unexpected keyword argument 'other'"):
        charge(7, other=1)  # type: ignore[call-arg]
