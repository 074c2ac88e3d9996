"""Makes the peers' environments below .venv-peers: `python -m benchmarks.peers.environment`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks.lab.processes import ROOT
from benchmarks.peers.catalogue import PEERS, Peer

FOLDER = ROOT / ".venv-peers"


def python(peer: Peer) -> Path:
    """The interpreter of a peer's environment."""
    return FOLDER / peer.environment / "bin" / "python"


def installed(peer: Peer) -> bool:
    """Whether its environment is complete."""
    return (FOLDER / peer.environment / ".installed").exists()


def version(peer: Peer) -> str:
    """The version that is installed."""
    code = f"import importlib.metadata as m; print(m.version({peer.package!r}))"
    said = subprocess.run([python(peer), "-c", code], capture_output=True, text=True, check=True)
    return said.stdout.strip()


def install(peer: Peer) -> None:
    """Make the environment, if it is not there. Raises CalledProcessError."""
    if installed(peer):
        return
    folder = FOLDER / peer.environment
    print(f"peers: installing {', '.join(peer.needs)}", file=sys.stderr)
    subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
    pip = [str(python(peer)), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, *peer.needs], check=True)
    (folder / ".installed").touch()


def main() -> int:
    """Make all; one that cannot be made does not keep the others from being measured."""
    failed = []
    for peer in PEERS.values():
        try:
            install(peer)
        except subprocess.CalledProcessError:
            failed.append(peer.name)
    if failed:
        print(f"peers: could not install {', '.join(failed)}", file=sys.stderr)
    return 1 if len(failed) == len(PEERS) else 0


if __name__ == "__main__":
    sys.exit(main())
