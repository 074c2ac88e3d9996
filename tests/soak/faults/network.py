"""What happens to connections, by the proxies between the clients and Redis."""

from __future__ import annotations

from collections.abc import Callable

from tests.soak.faults.scene import Fault, Scene, Track
from tests.support.proxy import Proxy

Act = Callable[[Scene, Proxy, str], None]
DRIBBLED = (1, 7, 50, 200)
"""Bytes of a reply that get through at once."""


def _cut(_scene: Scene, proxy: Proxy, _scope: str) -> None:
    proxy.cut()


def _cut_within(scene: Scene, proxy: Proxy, _scope: str) -> None:
    proxy.cut_reply(scene.draw.randrange(1, 400))


def _swallow(_scene: Scene, proxy: Proxy, _scope: str) -> None:
    proxy.swallow_reply()


def _swallow_and_refuse(scene: Scene, proxy: Proxy, scope: str) -> None:
    """The first try is carried out and its answer lost; the next ones are refused for a while."""
    proxy.swallow_reply()
    proxy.wait_cut(0.5)
    with scene.away(scope):
        proxy.refuse()
        scene.wait(scene.draw.uniform(0.03, 0.2))
        proxy.accept()


def _stall(replies: bool, requests: bool) -> Act:
    def act(scene: Scene, proxy: Proxy, scope: str) -> None:
        with scene.away(scope):
            proxy.hold(replies, requests)
            scene.wait(scene.draw.uniform(0.05, 0.6))
            proxy.release()

    return act


def _dribble(scene: Scene, proxy: Proxy, _scope: str) -> None:
    proxy.dribble(scene.draw.choice(DRIBBLED))
    scene.wait(scene.draw.uniform(0.1, 0.5))
    proxy.dribble(0)


def _refuse(scene: Scene, proxy: Proxy, scope: str) -> None:
    with scene.away(scope):
        proxy.refuse()
        scene.wait(scene.draw.uniform(0.05, 0.8))
        proxy.accept()


def _outage(scene: Scene, proxy: Proxy, scope: str) -> None:
    with scene.away(scope):
        proxy.refuse()
        scene.wait(scene.lease * 1.6)
        proxy.accept()


ACTS: tuple[tuple[str, Act, float], ...] = (
    ("cut", _cut, 3),
    ("cut-reply", _cut_within, 4),
    ("swallow", _swallow, 2),
    ("swallow-refuse", _swallow_and_refuse, 1),
    ("stall", _stall(True, True), 1),
    ("stall-replies", _stall(True, False), 1),
    ("stall-requests", _stall(False, True), 1),
    ("dribble", _dribble, 2),
    ("refuse", _refuse, 1),
    ("outage", _outage, 0.25),
)


def _at(scopes: tuple[str, ...], act: Act) -> Callable[[Scene], None]:
    def hit(scene: Scene) -> None:
        scope = scene.draw.choice(scopes)
        act(scene, scene.field.server.proxies[scope], scope)

    return hit


def _faults(prefix: str, track: Track, scopes: tuple[str, ...]) -> tuple[Fault, ...]:
    return tuple(Fault(f"{prefix}-{name}", track, _at(scopes, act), w) for name, act, w in ACTS)


NETWORK_FAULTS = (
    *_faults("net", "network", ("pools", "pools", "consumers")),
    *_faults("producer", "clients", ("producers",)),
)
