import pickle
from pathlib import Path
from typing import Any

import pytest

from rqueue.embedded.server import EmbeddedRedis
from rqueue.errors import AuthenticationFailed, ConfigError, ConnectionLost
from rqueue.spark.access import Access
from rqueue.spark.options import HistoryRead, read_options

SECRET = "s3cr3t/with@odd:chars"
QUOTED = "s3cr3t%2Fwith%40odd%3Achars"


def access(environ: dict[str, str] | None = None, **options: str) -> Access:
    return Access.of(read_options(HistoryRead, options), environ or {})


def login(found: Access) -> tuple[str | None, str | None]:
    return found.username, found.password


def test_the_option_says_where() -> None:
    found = access({"RQUEUE_URL": "redis://elsewhere:1/0"}, url="redis://here:6379/0")
    assert found.url == "redis://here:6379/0"
    assert login(found) == (None, None)
    assert found.namespace == "rqueue"


def test_or_the_environment() -> None:
    found = access({"RQUEUE_URL": f"redis://me:{QUOTED}@h:1/0", "RQUEUE_NAMESPACE": "n"})
    assert (found.url, found.namespace) == ("redis://h:1/0", "n")
    assert login(found) == ("me", SECRET)
    assert access({"RQUEUE_URL": "redis://h:1/0?password=p&db=3"}).url == "redis://h:1/0?db=3"
    assert access({"RQUEUE_URL": "unix:///run/r.sock"}).url == "unix:///run/r.sock"


def test_a_namespace_of_the_option_comes_first() -> None:
    assert access({"RQUEUE_NAMESPACE": "n"}, url="redis://h", namespace="m").namespace == "m"


def test_nowhere() -> None:
    with pytest.raises(ConfigError, match="RQUEUE_URL"):
        access()


@pytest.mark.parametrize(
    "url",
    [
        f"redis://me:{QUOTED}@h:1/0",
        f"redis://:{QUOTED}@h:1/0",
        "rediss://user@h:1/0",
        f"redis://h:1/0?password={QUOTED}",
        f"unix:///run/r.sock?password={QUOTED}",
        "redis://h:1/0?username=me",
    ],
)
def test_credentials_in_the_option_are_refused(url: str) -> None:
    with pytest.raises(ConfigError) as error:
        access({}, url=url)
    assert error.value.setting == "url"
    assert "credentialsFile" in str(error.value)
    assert "s3cr3t" not in str(error.value)


def test_the_environment_s_login_is_for_any_server() -> None:
    environ = {"RQUEUE_USERNAME": "me", "RQUEUE_PASSWORD": SECRET}
    assert login(access(environ, url="redis://h:1/0")) == ("me", SECRET)


def test_the_login_in_a_url_is_for_that_server_alone() -> None:
    environ = {"RQUEUE_URL": f"redis://me:{QUOTED}@h:1/0"}
    assert login(access(environ, url="redis://h:1/0")) == ("me", SECRET)
    assert login(access(environ, url="redis://other:1/0")) == (None, None)


def test_a_file_comes_before_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "credentials"
    file.write_text(f"# for Spark\n\nexport RQUEUE_USERNAME=robot\nRQUEUE_PASSWORD='{SECRET}'\n")
    found = access({"RQUEUE_PASSWORD": "other"}, url="redis://h:1/0", credentialsFile=str(file))
    assert login(found) == ("robot", SECRET)
    file.write_text(f"RQUEUE_URL=redis://me:{QUOTED}@h:1/0\n")
    assert access(credentialsFile=str(file)).whole_url() == f"redis://me:{QUOTED}@h:1/0"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"RQUEUE_PASSWORD={SECRET}\n{SECRET}\n", "line 2"),
        (f"PASSWORD={SECRET}\n", "line 1"),
    ],
)
def test_a_file_that_is_not_understood(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "credentials"
    file.write_text(text)
    with pytest.raises(ConfigError, match=said) as error:
        access(url="redis://h:1/0", credentialsFile=str(file))
    assert SECRET not in str(error.value)
    with pytest.raises(ConfigError, match="cannot read"):
        access(url="redis://h:1/0", credentialsFile=str(tmp_path / "nothing"))
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="no UTF-8"):
        access(url="redis://h:1/0", credentialsFile=str(file))


def test_it_travels_whole_and_shows_nothing() -> None:
    found = access(
        {"RQUEUE_PASSWORD": SECRET, "RQUEUE_SIGNING_KEYS": "k1:sign-secret-of-16"},
        url="redis://h:1/0",
    )
    there = pickle.loads(pickle.dumps(found))
    assert there == found
    assert there.password == SECRET
    for text in (repr(found), str(found), f"{found}"):
        assert SECRET not in text
        assert "sign-secret" not in text


@pytest.mark.parametrize("password", [SECRET, "wrong-s3cr3t"])
def test_a_server_that_asks_for_a_password(make_server: Any, password: str) -> None:
    server: EmbeddedRedis = make_server(port=0, config={"requirepass": SECRET})
    found = access({"RQUEUE_PASSWORD": password}, url=server.tcp_url)
    if password == SECRET:
        with found.client() as client:
            assert client.ping()
        return
    with pytest.raises(AuthenticationFailed) as error, found.client() as client:
        client.ping()
    assert "s3cr3t" not in str(error.value)


def test_nobody_there() -> None:
    found = access({"RQUEUE_PASSWORD": SECRET}, url="redis://127.0.0.1:1/0", connectTimeout="1s")
    with pytest.raises(ConnectionLost) as error, found.client() as client:
        client.ping()
    assert SECRET not in str(error.value)
    with pytest.raises(ConfigError, match="not the address of a cluster's node"):
        access(url="unix:///run/r.sock", cluster="true")


def test_a_cluster_is_named_by_its_url_or_by_an_option() -> None:
    nodes = "redis+cluster://a:7000,b:7001"
    found = access({"RQUEUE_URL": "redis+cluster://me:pw@a:7000,b:7001"}, url=nodes)
    assert found.cluster and found.url == nodes and found.password == "pw"
    assert found.whole_url() == "redis+cluster://me:pw@a:7000,b:7001"
    assert access(url="valkeys+cluster://a").cluster
    alias = access(url="rediss://a:7000/0?ssl_cert_reqs=none", cluster="true")
    assert alias.cluster and alias.url == "rediss+cluster://a:7000?ssl_cert_reqs=none"
    assert not access(url="redis://a").cluster
    with pytest.raises(ConfigError, match="number 0 alone"):
        access(url="redis://a/3", cluster="true")


def test_the_login_at_sentinels_is_a_secret_too() -> None:
    bare = "redis+sentinel://a:1,b:2/main/3"
    whole = "redis+sentinel://me:pw@a:1,b:2/main/3?sentinel_password=other"
    with pytest.raises(ConfigError, match="holds a user or password"):
        access(url=f"{bare}?sentinel_password=other")
    found = access({"RQUEUE_URL": whole}, url=bare)
    assert found.whole_url() == whole
    assert "other" not in repr(found)
    assert "other" not in found.url
    assert access({"RQUEUE_URL": whole}, url="redis://c").at_sentinels == ""
    assert access({"REDIS_URL": "redis://hosted"}).url == "redis://hosted"


def test_the_development_server_of_the_folder_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the command line finds it; what is said counts before."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="rqueue dev"):
        Access.of(read_options(HistoryRead, {}), {})
    with EmbeddedRedis(tmp_path / ".rqueue") as dev:
        assert Access.of(read_options(HistoryRead, {}), {}).url == dev.url
        said = read_options(HistoryRead, {"url": "redis://elsewhere:1/0"})
        assert Access.of(said, {}).url == "redis://elsewhere:1/0"
        assert Access.of(read_options(HistoryRead, {}), {"RQUEUE_URL": "redis://b:2/0"}).url == (
            "redis://b:2/0"
        )
