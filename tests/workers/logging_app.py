"""Tasks of an application that configures logging as Django does: what it does not name is
disabled."""

import logging
import logging.config

from rqueue.tasks.control import Reject
from rqueue.tasks.decorator import task

logging.config.dictConfig(
    {
        "version": 1,
        "formatters": {"plain": {"format": "shop says %(message)s"}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "plain"}},
        "root": {"handlers": ["stderr"], "level": "INFO"},
    }
)


@task(name="speak", max_deliveries=1)
def speak(text: str) -> None:
    logging.getLogger("shop").info("%s", text)
    raise ValueError(f"no\n{text}")


@task(name="refuse")
def refuse() -> None:
    raise Reject("not today")
