from flask import current_app

from rqueue import task


@task(queue="mail", max_deliveries=5)
def send_receipt(email: str) -> str:
    return f"receipt for {email} from {current_app.config['SHOP']}"
