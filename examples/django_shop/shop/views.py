from django.db import transaction
from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from rqueue import InvalidName, JobFailed, ResultError, ResultTimeout, UnknownJob, queue
from shop.models import Order
from shop.tasks import send_receipt


@csrf_exempt
@require_POST
@transaction.atomic
def place_order(request: HttpRequest) -> JsonResponse:
    order = Order.objects.create(email=request.POST["email"])
    job = send_receipt.enqueue(order.id)  # stored when the transaction is committed
    return JsonResponse({"order": order.id, "job": job.id}, status=202)


def receipt(request: HttpRequest, job_id: str) -> JsonResponse:
    try:
        return JsonResponse({"receipt": queue("mail").job(job_id).result(timeout=5)})
    except ResultTimeout as error:
        return JsonResponse({"state": error.state}, status=202)
    except JobFailed as error:
        return JsonResponse({"state": "dead", "error": error.type}, status=500)
    except (UnknownJob, InvalidName):
        return JsonResponse({"state": "unknown"}, status=404)
    except ResultError as error:  # cancelled, or its result is no longer kept
        return JsonResponse({"error": str(error)}, status=410)
