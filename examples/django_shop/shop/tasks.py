from rqueue import task
from shop.models import Order


@task(queue="mail", max_deliveries=5)
def send_receipt(order_id: int) -> str:
    order = Order.objects.get(id=order_id)
    order.receipt = f"receipt for {order.email}"
    order.save()
    return order.receipt
