"""The address of a server, as people write it: what is allowed, and what its parts are. No I/O.

| URL | meaning |
| --- | --- |
| `redis://[user:password@][host][:port][/db]` | one server, without a host this one; `valkey://` is the same |
| `rediss://...` | the same over TLS; `valkeys://` is the same |
| `unix://[user:password@]/path[?db=N]` | one server, over a unix socket |
| `redis+sentinel://[user:password@]host[:port],host.../name[/db]` | the primary that these Sentinels know by this name; user and password are the server's |
| `rediss+sentinel://...` | the same over TLS, to the Sentinels too |
| `redis+cluster://[user:password@]host[:port],host...` | the Redis Cluster that these nodes are of; one that answers is enough; `valkey+cluster://` is the same |
| `rediss+cluster://...` | the same over TLS |
| `memory://NAME` | a server in this process, for tests: see `rqueue.testing` |

Of a Sentinel URL the options `sentinel_username` and `sentinel_password` are the login at the
Sentinels themselves; all other options are those of redis-py, as on a plain URL.
"""  # noqa: E501

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

__all__ = [
    "MEMORY",
    "ClusterUrl",
    "SentinelUrl",
    "as_cluster_url",
    "cluster_url",
    "is_cluster_url",
    "is_sentinel",
    "problem_of",
    "sentinel_url",
    "spoken",
]

MEMORY = "memory"
"""The scheme of servers that are in this process."""

SENTINEL_PORT = 26379
PORT = 6379

_ALIASES = {
    "valkey": "redis",
    "valkeys": "rediss",
    "valkey+sentinel": "redis+sentinel",
    "valkeys+sentinel": "rediss+sentinel",
    "valkey+cluster": "redis+cluster",
    "valkeys+cluster": "rediss+cluster",
}
_PLAIN = ("redis", "rediss", "unix")
_SENTINEL = ("redis+sentinel", "rediss+sentinel")
_CLUSTER = ("redis+cluster", "rediss+cluster")
_KNOWN = "redis://, rediss://, unix://, redis+sentinel:// or redis+cluster://"
_EXAMPLE = "for instance redis://localhost:6379/0"


def spoken(url: str) -> str:
    """The URL under the name that redis-py knows its scheme by."""
    scheme, separator, rest = url.partition("://")
    return f"{_ALIASES.get(scheme, scheme)}{separator}{rest}"


def is_sentinel(url: str) -> bool:
    """Whether Sentinels are to be asked where the server is."""
    return spoken(url).partition("://")[0] in _SENTINEL


def is_cluster_url(url: str) -> bool:
    """Whether the URL is that of a Redis Cluster."""
    return spoken(url).partition("://")[0] in _CLUSTER


class SentinelUrl(NamedTuple):
    """The parts of a Sentinel URL. `server`: a plain URL with everything that counts for the server
    itself (login, database, TLS) and a host that means nothing."""

    sentinels: tuple[tuple[str, int], ...]
    name: str
    server: str
    tls: bool
    username: str | None
    password: str | None


def sentinel_url(url: str) -> SentinelUrl:
    """Take a Sentinel URL apart. Raises ValueError, whose text shows no password."""
    parts = urlsplit(spoken(url))
    login, at, hosts = parts.netloc.rpartition("@")
    name, _, db = parts.path.removeprefix("/").partition("/")
    if not name:
        raise ValueError(
            "names no primary: write redis+sentinel://host:26379/NAME, with the name that the "
            "Sentinels know it by"
        )
    if db and not db.isdecimal():
        raise ValueError("what follows the primary's name is the number of a database")
    query = parse_qsl(parts.query, keep_blank_values=True)
    own = {key: value for key, value in query if key.startswith("sentinel_")}
    unknown = own.keys() - {"sentinel_username", "sentinel_password"}
    if unknown:
        raise ValueError(f"has an option that is not known: {min(unknown)}")
    rest = urlencode([(key, value) for key, value in query if key not in own])
    tls = parts.scheme.startswith("rediss")
    server = f"{'rediss' if tls else 'redis'}://{login}{at}behind-sentinels/{db or 0}"
    return SentinelUrl(
        tuple(_address(host, "Sentinel", SENTINEL_PORT) for host in hosts.split(",")),
        unquote(name),
        server + (f"?{rest}" if rest else ""),
        tls,
        own.get("sentinel_username") or None,
        own.get("sentinel_password") or None,
    )


class ClusterUrl(NamedTuple):
    """The parts of a cluster's URL. `server`: a plain URL with everything that counts for every
    node (login, TLS), and the first host."""

    nodes: tuple[tuple[str, int], ...]
    server: str


def cluster_url(url: str) -> ClusterUrl:
    """Take a cluster's URL apart. Raises ValueError, whose text shows no password."""
    parts = urlsplit(spoken(url))
    login, at, hosts = parts.netloc.rpartition("@")
    if parts.path not in ("", "/", "/0") or dict(parse_qsl(parts.query)).get("db", "0") != "0":
        raise ValueError("names a database: a cluster has number 0 alone")
    nodes = tuple(_address(host, "node", PORT) for host in hosts.split(","))
    scheme = parts.scheme.partition("+")[0]
    host, port = nodes[0]
    first = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return ClusterUrl(
        nodes, f"{scheme}://{login}{at}{first}" + (f"?{parts.query}" if parts.query else "")
    )


def as_cluster_url(url: str) -> str:
    """The URL of the cluster that a plain URL names a node of; a cluster's own as it is. Raises
    ValueError for what is no node's address."""
    if is_cluster_url(url):
        return url
    parts = urlsplit(spoken(url))
    if parts.scheme not in ("redis", "rediss"):
        raise ValueError(f"{url} is not the address of a cluster's node")
    query = f"?{parts.query}" if parts.query else ""
    path = "" if parts.path in ("/", "/0") else parts.path
    found = f"{parts.scheme}+cluster://{parts.netloc}{path}{query}"
    cluster_url(found)  # says what is wrong with it
    return found


def _address(text: str, what: str, usual_port: int) -> tuple[str, int]:
    parts = urlsplit(f"//{text.strip()}")
    try:
        port = parts.port
    except ValueError:
        raise ValueError(f"has a {what} with no port number: '{text}'") from None
    if not parts.hostname:
        raise ValueError(f"names a {what} without a host")
    if not _is_host(parts.hostname):
        raise ValueError(f"names a {what} that is no host name: '{parts.hostname}'")
    return parts.hostname, port or usual_port


def problem_of(url: str) -> str:
    """What is wrong with a URL, "" if nothing. Shows nothing of the URL itself but hosts."""
    try:
        parts = urlsplit(spoken(url))
        if parts.scheme in _SENTINEL:
            sentinel_url(url)
            return ""
        if parts.scheme in _CLUSTER:
            cluster_url(url)
            return ""
        if "," in parts.netloc.rpartition("@")[2]:
            return (
                "names several hosts: of Sentinels they begin with redis+sentinel://, of a Redis "
                "Cluster with redis+cluster://"
            )
        _ = parts.port
    except ValueError as error:
        said = str(error)
        return said if said.startswith(("names ", "has ", "what ")) else f"is no URL ({said})"
    if "cluster" in parts.scheme:
        return "must begin with redis+cluster:// or rediss+cluster://"
    if "sentinel" in parts.scheme:
        return "must begin with redis+sentinel:// or rediss+sentinel://"
    if parts.scheme == MEMORY:
        return "" if parts.netloc and not parts.path else "has no name, as in memory://tests"
    if parts.scheme not in _PLAIN:
        return f"must begin with {_KNOWN}, {_EXAMPLE}"
    if "cluster" in dict(parse_qsl(parts.query)):
        return "has an option for a cluster: write redis+cluster://HOST:PORT instead"
    if parts.scheme == "unix" and not parts.path:
        return "has no path, as in unix:///run/redis.sock"
    if parts.hostname and not _is_host(parts.hostname):
        return f"names no host: '{parts.hostname}'"
    if parts.scheme != "unix" and not _is_database(parts.path):
        return "names no database by its number: what follows the host is /0, /1, ... or nothing"
    return ""


def _is_host(name: str) -> bool:
    """Whether the resolver can be asked for a name: it takes no empty or overlong parts."""
    try:
        name.encode("idna")
    except UnicodeError:
        return False
    return True


def _is_database(path: str) -> bool:
    """Whether a plain URL's path is one that redis-py reads as it is meant: it takes the digits
    of `/1/2` together, and what is no number for database 0."""
    number = path.removeprefix("/")
    return not number or (number.isascii() and number.isdecimal())
