"""What must always hold of a queue with selectors, as functions over snapshots."""

from __future__ import annotations

from collections.abc import Iterator

from rqueue.errors import Undecodable
from rqueue.model.job import Header, is_mark, parse_value
from rqueue.model.selector import class_text
from rqueue.protocol.policies.selectors import labels_in
from tests.support.snapshot import Snapshot


def used(snapshot: Snapshot) -> bool:
    """Whether the queue has the policy."""
    return "selectors" in snapshot.meta.get("v", "")


def numbers(snapshot: Snapshot) -> dict[str, str]:
    """Labels -> number of their class."""
    return {text.decode(): n.decode() for text, n in snapshot.hash("classes").items()}


def heard(snapshot: Snapshot, consumer: str) -> set[str]:
    """The classes that a consumer takes from, "0" for the lists."""
    audience = snapshot.consumers.get(consumer, {}).get("audience", "0")
    if audience == "0":
        return {"0", *numbers(snapshot).values()}
    said = snapshot.hash("hears").get(audience.encode(), b"").decode()
    return {number for number in said.split(",") if number}


def takes(snapshot: Snapshot, consumer: str, ids: list[str]) -> list[str]:
    """Those of these ready jobs that a consumer takes; with priorities of consumers none, as it
    leaves some to others."""
    if not used(snapshot):
        return ids
    if snapshot.meta.get("ranked") == "1":
        return []
    classes, mine = numbers(snapshot), heard(snapshot, consumer)
    return [id for id in ids if classes.get(noted(snapshot, id) or "", "0") in mine]


def of_classes(snapshot: Snapshot) -> list[str]:
    """All of it."""
    if not used(snapshot):
        kept = [key for key in snapshot.keys if key.startswith(("class", "audiences", "hears"))]
        return [f"a queue without selectors has {kept}"] if kept else []
    return [
        *places(snapshot),
        *known(snapshot),
        *audiences(snapshot),
        *liveness(snapshot),
    ]


def _jobs(snapshot: Snapshot, ids: list[str]) -> Iterator[tuple[str, Header, bytes]]:
    for id in ids:
        value = snapshot.jobs.get(id, b"!")
        if not is_mark(value):
            try:
                yield id, *parse_value(value)
            except Undecodable:
                continue  # conservation says so


def noted(snapshot: Snapshot, id: str) -> str | None:
    """The labels that a job's header notes; None where they are not known."""
    _, found, labels = snapshot.jobs[id].partition(b";")[0].partition(b"|c")
    return labels.partition(b"|")[0].decode() if found else None


def places(snapshot: Snapshot) -> list[str]:
    """A ready job stands in the class of its labels, at its place; what is noted of its labels is
    what its envelope says."""
    wrong = []
    classes = numbers(snapshot)
    for number, members in snapshot.classes.items():
        for id, score, level, position in members:
            for _, head, envelope in _jobs(snapshot, [id]):
                labels = noted(snapshot, id)
                if labels != class_text(labels_in(envelope)):
                    wrong.append(f"job {id} is noted as {labels}, its envelope says otherwise")
                if labels is None or classes.get(labels) != number:
                    wrong.append(f"job {id} of {labels} stands in class {number}")
                said = (9 - head.level) * 10**14 + (head.due_ms or 5 * 10**13 + head.position)
                said = (10 - head.level) * 10**14 - 1 if head.sort else said
                if (level, position, score) != (head.level, head.position, said):
                    wrong.append(f"job {id} at {head} stands as {(score, level, position)}")
    for key, ids in snapshot.lists.items():
        for id, _, _ in _jobs(snapshot, ids):
            labels = noted(snapshot, id)
            if labels is not None and len(classes) < 64:
                wrong.append(f"job {id} of {labels} stands in {key}")
    return wrong


def known(snapshot: Snapshot) -> list[str]:
    """Numbers of classes and audiences are used once, and their keys are of known ones."""
    wrong = []
    classes = list(numbers(snapshot).values())
    if len(set(classes)) < len(classes) or len(classes) > 64:
        wrong.append(f"classes are {numbers(snapshot)}")
    if strays := set(snapshot.classes) - set(classes):
        wrong.append(f"jobs stand in the unknown classes {sorted(strays)}")
    said = [number.decode() for number in snapshot.hash("audiences").values()]
    if sorted(said) != sorted(number.decode() for number in snapshot.hash("hears")):
        wrong.append(f"audiences are {said}, known is what {snapshot.hash('hears')} hear")
    for audience, text in snapshot.hash("hears").items():
        named = [number for number in text.decode().split(",") if number]
        if len(set(named)) < len(named) or set(named) - set(classes):
            wrong.append(f"audience {audience!r} hears {named}, classes are {classes}")
    return wrong


def audiences(snapshot: Snapshot) -> list[str]:
    """Who is interested stands, at the same place, in the set of its audience, and nobody else."""
    if snapshot.meta.get("hearing") != "1":
        return []
    expected: dict[str, dict[str, float]] = {}
    for name, score in snapshot.scores("interested").items():
        audience = snapshot.consumers.get(name, {}).get("audience", "0")
        expected.setdefault(audience, {})[name] = score
    found = {
        number: snapshot.scores(f"interested:{number}") for number in snapshot.named("interested:")
    }
    return [] if expected == found else [f"interested are {expected}, by audience {found}"]


def liveness(snapshot: Snapshot) -> list[str]:
    """Work of a class that an interested consumer could take implies a notified one that could."""
    if snapshot.meta.get("paused") == "1":
        return []
    ready = {number for number, members in snapshot.classes.items() if members}
    if any(list(_jobs(snapshot, ids)) for ids in snapshot.lists.values()):
        ready.add("0")
    notified = [heard(snapshot, name) for name in snapshot.scores("notified")]
    wrong = []
    for name in snapshot.scores("interested"):
        for number in sorted(heard(snapshot, name) & ready):
            if not any(number in its for its in notified):
                wrong.append(
                    f"{name} waits, class {number} has jobs, none that takes them is notified"
                )
    return wrong
