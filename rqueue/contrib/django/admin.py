"""The admin page of queues: all of them, the jobs of one in a state, one job, and what may be done
with them. It reads page by page and keeps nothing.

Queues are named in the query, not in the path: their names may hold anything.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.views.decorators.http import require_POST

from rqueue.contrib.django import job_actions
from rqueue.contrib.django.job_pages import STATES, job_facts, job_rows, queue_rows
from rqueue.contrib.django.models import JobQueue
from rqueue.errors import ConfigError, InvalidName, ServerError, UnknownJob, UnknownQueue
from rqueue.inspector import Inspector

__all__ = ["JobQueueAdmin"]

LOOK, ACT = "rqueue.view", "rqueue.act"
PAGE = 100
NAME = "rqueue_jobqueue_"
"""What the names of the pages begin with."""
View = Callable[..., HttpResponse]


@admin.register(JobQueue)
class JobQueueAdmin(admin.ModelAdmin):
    """Queues and jobs: to be looked at with the permission `rqueue.view`, and changed with
    `rqueue.act`."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Whether the app is shown."""
        return bool(request.user.has_perm(LOOK))

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whether pages are shown."""
        return bool(request.user.has_perm(LOOK))

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nothing is a form."""
        return False

    has_add_permission = has_delete_permission = has_change_permission

    def get_urls(self) -> list[URLPattern]:
        """Pages of our own in place of the model's."""
        site = self.admin_site.admin_view
        return [
            path("", site(self._page(self.queues)), name=f"{NAME}changelist"),
            path("jobs/", site(self._page(self.jobs)), name=f"{NAME}jobs"),
            path("job/", site(self._page(self.job)), name=f"{NAME}job"),
            path("act/", site(require_POST(self._page(self.act))), name=f"{NAME}act"),
        ]

    def _page(self, view: View) -> View:
        """A page for those who may look; without Redis it says what is wrong."""

        @wraps(view)
        def page(request: HttpRequest) -> HttpResponse:
            if not self.has_view_permission(request):
                raise PermissionDenied
            request.current_app = self.admin_site.name
            try:
                with job_actions.inspector() as inspector:
                    return view(request, inspector)
            except (UnknownQueue, UnknownJob, InvalidName) as error:
                raise Http404(str(error)) from None
            except (ServerError, ConfigError) as error:
                context = self._context(request, "Queues", problem=str(error))
                return TemplateResponse(request, _template("queues"), context, status=503)

        return page

    def _context(self, request: HttpRequest, title: str, **more: Any) -> dict[str, Any]:
        return {
            **self.admin_site.each_context(request),
            "opts": self.model._meta,
            "title": title,
            "may_act": request.user.has_perm(ACT),
            **more,
        }

    # -- pages -------------------------------------------------------------------------------------

    def queues(self, request: HttpRequest, inspector: Inspector) -> HttpResponse:
        """All queues in numbers."""
        context = self._context(request, "Queues", queues=queue_rows(inspector), states=STATES)
        return TemplateResponse(request, _template("queues"), context)

    def jobs(self, request: HttpRequest, inspector: Inspector) -> HttpResponse:
        """A page of the jobs of a queue in one state."""
        queue, state = request.GET.get("queue", ""), request.GET.get("state", "ready")
        if state not in STATES:
            raise Http404(state)
        try:
            page = inspector.jobs(queue, state, request.GET.get("after", ""), PAGE)
        except ConfigError as error:  # no page ended so
            raise Http404(str(error)) from None
        more = urlencode({"queue": queue, "state": state, "after": page.next}) if page.next else ""
        context = self._context(
            request,
            f"{queue}: {state}",
            queue=queue,
            state=state,
            states=STATES,
            jobs=job_rows(page),
            more=more,
            actions=job_actions.of_state(state) if request.user.has_perm(ACT) else [],
        )
        return TemplateResponse(request, _template("jobs"), context)

    def job(self, request: HttpRequest, inspector: Inspector) -> HttpResponse:
        """All that is known of one job."""
        queue, id = request.GET.get("queue", ""), request.GET.get("id", "")
        look = inspector.job(id, queue)
        context = self._context(
            request,
            f"Job {look.job.id}",
            queue=queue,
            job=look.job,
            facts=job_facts(look),
            actions=job_actions.of_state(str(look.job.state)) if request.user.has_perm(ACT) else [],
        )
        return TemplateResponse(request, _template("job"), context)

    def act(self, request: HttpRequest, inspector: Inspector) -> HttpResponse:
        """Do something with jobs, or with a queue, and say what became of it."""
        if not request.user.has_perm(ACT):
            raise PermissionDenied
        queue, ids = request.POST.get("queue", ""), request.POST.getlist("id")
        inspector.require_queue(queue)
        action = job_actions.ACTIONS.get(request.POST.get("action", ""))
        if action is None:
            raise Http404("no such action")
        if not ids and not action.of_queue:
            messages.warning(request, "No job was chosen.")
        else:
            done = action.run(inspector, queue, ids, str(request.user))
            level = messages.SUCCESS if done else messages.WARNING
            messages.add_message(request, level, action.said(queue, done, len(ids)))
        if action.of_queue:
            return HttpResponseRedirect(self._url("changelist"))
        back = urlencode({"queue": queue, "state": request.POST.get("state", "ready")})
        return HttpResponseRedirect(f"{self._url('jobs')}?{back}")

    def _url(self, page: str) -> str:
        return str(reverse(f"admin:{NAME}{page}", current_app=self.admin_site.name))


def _template(name: str) -> str:
    return f"admin/rqueue/{name}.html"
