from rqueue import task


@task(queue="mail", max_deliveries=5)
async def send_receipt(email: str) -> str:
    return f"receipt for {email}"
