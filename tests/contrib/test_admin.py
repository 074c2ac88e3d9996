"""The admin page: who may look and who may act, what it shows, what it does."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from rqueue.client._sync.queue import Queue

PAGE = "/admin/rqueue/jobqueue/"


@pytest.fixture
def browser(django: Any) -> Iterator[Any]:
    """Logs in with permissions, and gets pages."""
    from django.contrib.auth.models import Permission, User
    from django.test import Client

    def login(*may: str, **more: Any) -> Any:
        user = User.objects.create_user("ada", is_staff=True, **more)
        user.user_permissions.set(
            Permission.objects.filter(content_type__app_label="rqueue", codename__in=may)
        )
        client = Client()
        client.force_login(user)
        return client

    yield login
    User.objects.all().delete()


def act(browser: Any, queue: Queue, action: str, *ids: str, **more: str) -> str:
    data = {"queue": queue.name, "action": action, "id": ids, **more}
    answer = browser.post(f"{PAGE}act/", data, follow=True)
    assert answer.status_code == 200
    return str(answer.content.decode())


def shown(answer: Any) -> str:
    """The text of a page's content."""
    page = answer.content.decode().partition('<div id="content-main">')[2]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page))


def paused(queue: Queue) -> bool:
    from rqueue.inspector import Inspector

    with Inspector(redis=queue.redis) as inspector:
        return inspector.queue(queue.name).paused


def kill(queue: Queue, message: str) -> None:
    with queue.consumer(renew=False) as consumer:
        (job,) = consumer.pull()
        error = {"type": "ValueError", "message": message, "traceback": "Traceback\nline"}
        consumer.settle(reject=[(job, error)])


def test_who_may_look_and_who_may_act(django: Any, browser: Any) -> None:
    from django.test import Client

    django.queue.send("t", [1])
    job = f"{PAGE}jobs/?queue={django.queue.name}"
    nobody = browser()
    for page in ("", f"jobs/?queue={django.queue.name}", "job/?queue=x&id=1"):
        assert nobody.get(PAGE + page).status_code == 403
        assert Client().get(PAGE + page).status_code == 302, "to the login"
    assert b"Queues" not in nobody.get("/admin/").content
    nobody.logout()
    from django.contrib.auth.models import User

    User.objects.all().delete()
    reader = browser("view")
    assert b"jobqueue" in reader.get("/admin/").content
    assert b'value="pause"' not in reader.get(PAGE).content
    page = reader.get(job).content
    assert b'type="checkbox"' not in page and b'value="cancel"' not in page
    refused = reader.post(f"{PAGE}act/", {"queue": django.queue.name, "action": "pause"})
    assert refused.status_code == 403
    assert not paused(django.queue)


def test_what_is_shown(django: Any, browser: Any) -> None:
    queue: Queue = django.queue
    reader = browser("view")
    queue.send("shop.pay", [1, "<b>x</b>\u202e"], {"by": "card"})
    text = shown(reader.get(PAGE))
    assert queue.name in text
    page = reader.get(f"{PAGE}jobs/?queue={queue.name}")
    assert "&lt;b&gt;x&lt;/b&gt;" in page.content.decode() and "\u202e" not in page.content.decode()
    assert "shop.pay" in shown(page) and "by=&quot;card&quot;" in shown(page)
    kill(queue, "no money")
    dead = reader.get(f"{PAGE}jobs/?queue={queue.name}&state=dead")
    assert "ValueError: no money" in shown(dead)
    (link,) = re.findall(r'href="([^"]*/job/[^"]*)"', dead.content.decode())
    job = shown(reader.get(link.replace("&amp;", "&")))
    assert "shop.pay" in job and "Traceback line" in job and "dead" in job
    for state in ("ready", "scheduled", "blocked", "parked", "deferred", "held", "ended"):
        answer = reader.get(f"{PAGE}jobs/?queue={queue.name}&state={state}")
        assert f"No job is {state}" in shown(answer)


def test_a_long_listing_has_pages(django: Any, browser: Any) -> None:
    from rqueue.contrib.django import admin
    from rqueue.protocol.job_packer import Call

    reader = browser("view")
    django.queue.enqueue_many([Call("t", [i]) for i in range(admin.PAGE + 5)])
    url, seen = f"?queue={django.queue.name}", 0
    while url:
        page = reader.get(f"{PAGE}jobs/{url}").content.decode()
        seen += page.count("/job/?")
        following = re.findall(r'href="([^"]*)">Next page', page)
        url = following[0].replace("&amp;", "&") if following else ""
    assert seen == admin.PAGE + 5


def test_jobs_are_cancelled_requeued_and_promoted(
    django: Any, browser: Any, caplog: pytest.LogCaptureFixture
) -> None:
    queue: Queue = django.queue
    operator = browser("view", "act")
    caplog.set_level("INFO", "rqueue.django")
    first, second = queue.send("t", [1]), queue.send("t", [2])
    assert "1 job cancelled." in act(operator, queue, "cancel", second.id)
    assert "0 of 1 job cancelled: a job that" in act(operator, queue, "cancel", second.id)
    assert (first.state(), second.state()) == ("ready", "cancelled")
    kill(queue, "x")
    assert "1 job requeued." in act(operator, queue, "requeue", first.id, state="dead")
    assert first.state() == "ready"
    assert f"ada: Requeue in queue {queue.name}: 1 of ['{first.id}']" in caplog.text
    from rqueue.tasks.options import Options

    later = queue.send("t", [3], options=Options(delay_ms=3_600_000))
    assert "1 job made ready." in act(operator, queue, "promote", later.id, state="scheduled")
    waits = queue.send("t", [4], options=Options(after=[later]))
    assert "1 job cancelled." in act(operator, queue, "cancel", waits.id, state="deferred")
    assert waits.state() == "cancelled"
    assert later.state() == "ready"
    assert "No job was chosen" in act(operator, queue, "cancel")
    name = f"Queue {queue.name}"
    assert f"{name} is paused." in act(operator, queue, "pause") and paused(queue)
    assert f"{name} was already paused." in act(operator, queue, "pause") and paused(queue)
    assert f"{name} is running." in act(operator, queue, "resume") and not paused(queue)
    assert f"{name} was already running." in act(operator, queue, "resume")


def test_what_is_not_there(django: Any, browser: Any) -> None:
    operator = browser("view", "act")
    queue = django.queue.send("t", [1]).queue
    for page in (
        "jobs/?queue=nobody",
        f"jobs/?queue={queue}&state=strange",
        f"job/?queue={queue}&id=nobody",
        "jobs/?queue=a%0Ab",
        f"jobs/?queue={queue}&after=strange",
    ):
        assert operator.get(PAGE + page).status_code == 404, page
    assert operator.get(f"{PAGE}act/").status_code == 405
    for data in ({"queue": queue, "action": "burn"}, {"queue": "nobody", "action": "pause"}):
        assert operator.post(f"{PAGE}act/", data).status_code == 404


def test_without_redis_the_page_says_so(django: Any, browser: Any) -> None:
    with django.override(url="redis://127.0.0.1:1"):
        answer = browser("view").get(PAGE)
    assert answer.status_code == 503
    assert "127.0.0.1:1" in shown(answer)


def test_a_form_from_elsewhere_is_refused(django: Any, browser: Any) -> None:
    from django.test import Client

    operator = browser("view", "act")
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = operator.cookies
    data = {"queue": django.queue.name, "action": "pause"}
    assert strict.post(f"{PAGE}act/", data).status_code == 403


def test_nothing_is_in_the_database(django: Any) -> None:
    from django.core.management import call_command
    from django.db import connection

    assert not [name for name in connection.introspection.table_names() if "jobqueue" in name]
    call_command("makemigrations", "--check", "--dry-run", verbosity=0)
