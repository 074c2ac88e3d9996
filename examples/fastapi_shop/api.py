from typing import Annotated

from fastapi import Depends, FastAPI, HTTPException

from rqueue import AsyncQueue, InvalidName, JobFailed, ResultError, ResultTimeout, UnknownJob
from rqueue.contrib.fastapi import lifespan, queue_named
from tasks import send_receipt

api = FastAPI(lifespan=lifespan())
Mail = Annotated[AsyncQueue, Depends(queue_named("mail"))]


@api.post("/orders", status_code=202)
async def place_order(email: str) -> dict[str, str]:
    job = await send_receipt.aenqueue(email)
    return {"job": job.id}


@api.get("/receipts/{job_id}")
async def receipt(job_id: str, mail: Mail) -> dict[str, str]:
    try:
        return {"receipt": await mail.job(job_id).result(timeout=5)}
    except ResultTimeout as error:
        return {"state": error.state}
    except JobFailed as error:
        return {"state": "dead", "error": error.type}
    except (UnknownJob, InvalidName):
        raise HTTPException(404, "no such job, or it ended long ago") from None
    except ResultError as error:  # cancelled, or its result is no longer kept
        raise HTTPException(410, str(error)) from None
