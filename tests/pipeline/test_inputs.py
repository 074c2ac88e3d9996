"""What the commands of `rqueue pipeline` are given is looked at before Java starts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rqueue.cli.pipeline.inputs import local_path
from tests.support.redis_server import Servers, chosen

WRONG = {
    "report --lake nowhere": (2, "lake: there is none at HERE/nowhere: rqueue pipeline archive"),
    "report --lake file:HERE/no%20where": (2, "lake: there is none at HERE/no where: rqueue"),
    "report --lake empty": (2, "lake: there is none at HERE/empty: rqueue pipeline archive"),
    "report --lake ''": (2, "--lake is empty: name a folder, or a URL that Spark reads"),
    "plan --lake nowhere": (2, "lake: there is none at HERE/nowhere: rqueue pipeline archive"),
    "replay --from lake --lake nowhere --where true": (2, "lake: there is none at HERE/nowhere"),
    "replay --where true --name a/b": (2, "name"),
    "archive --lake ' '": (2, "--lake is empty: name a folder, or a URL that Spark reads"),
    "report --by nonsense": (2, "by: 'nonsense' is not one of task, queue, group"),
    "report --by label:": (2, "by: 'label:' is not one of task, queue, group"),
    "report --out away/page.html": (2, "--out away/page.html: there is no folder away"),
    "report --out empty": (2, "--out empty is a folder: name a file in it"),
    "plan --plot away/plan.svg": (2, "--plot away/plan.svg: there is no folder away"),
    "plan --target 0": (2, "target: 0.0 is not a positive number of seconds"),
    "plan --percentile 300": (2, "percentile: 300 is not from 50 to 99.9"),
    "plan --jobs -1": (2, "jobs: a simulation of fewer than 1,000 jobs says nothing"),
    "load rows.csv --format csv --task t -q q": (2, "there is no file or folder rows.csv"),
    "report --conf a=b": (2, "'a=b' is not spark.NAME=VALUE"),
}
UNREACHABLE = ("report", "report --lake lake", "plan", "replay --where true")

PROGRAM = """
import json, shlex, sys
from rqueue.cli import cli
from tests.support.command_line import runner

started = []
sys.addaudithook(lambda event, _: started.append(event) if event == "subprocess.Popen" else None)
for url, line in json.load(sys.stdin):
    run = runner().invoke(cli, ["--url", url, "pipeline", *shlex.split(line)])
    print(json.dumps([run.exit_code, run.output, started]))
    started.clear()
"""


@pytest.fixture(scope="module")
def said(servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[object]]:
    """Exit code, output and started processes of each command line, all in one process that has
    no session of Spark."""
    here = tmp_path_factory.mktemp("inputs")
    (here / "empty").mkdir()
    (here / "lake/_spark_metadata").mkdir(parents=True)
    away = f"unix://{here}/no.sock"
    lines = [
        (servers.get(chosen() or "newest").url, line.replace("HERE", str(here))) for line in WRONG
    ]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=json.dumps([*lines, *((away, line) for line in UNREACHABLE)]),
        capture_output=True,
        text=True,
        check=True,
        cwd=here,
        env={name: value for name, value in os.environ.items() if "SPARK" not in name},
        timeout=120,
    )
    found = [json.loads(line.replace(str(here), "HERE")) for line in done.stdout.splitlines()]
    return dict(zip([*WRONG, *(f"away: {line}" for line in UNREACHABLE)], found, strict=True))


@pytest.mark.parametrize("line", WRONG)
def test_what_is_wrong_is_said_before_java_starts(line: str, said: dict[str, list[object]]) -> None:
    code, sentence = WRONG[line]
    assert said[line][0] == code, said[line]
    assert sentence in " ".join(str(said[line][1]).split())
    assert said[line][2] == []


@pytest.mark.parametrize("line", UNREACHABLE)
def test_a_server_that_is_away_is_said_before_java_starts(
    line: str, said: dict[str, list[object]]
) -> None:
    assert said[f"away: {line}"][0] == 4
    assert "cannot reach Redis" in str(said[f"away: {line}"][1])
    assert said[f"away: {line}"][2] == []


def test_nothing_is_concluded_where_a_path_may_be_on_another_file_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in list(os.environ):
        if "SPARK" in name or "HADOOP" in name:
            monkeypatch.delenv(name)
    here = str(tmp_path)
    assert local_path(here, None, ()) == local_path(here, "local[2]", ()) == tmp_path
    assert local_path(f"file:{here}", "yarn", ()) == tmp_path
    assert local_path(here, "spark://host:7077", ()) is None
    assert local_path(here, None, ("spark.hadoop.fs.defaultFS=hdfs://name/",)) is None
    for url in ("hdfs://name/lake", "s3a://bucket/lake", "file://host/lake"):
        assert local_path(url, None, ()) is None
    monkeypatch.setenv("HADOOP_CONF_DIR", here)
    assert local_path(here, None, ()) is None
