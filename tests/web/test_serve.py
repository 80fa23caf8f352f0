"""`thresher serve`, as a process: what it prints, what it refuses, how it ends."""

import contextlib
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest
from running import BEARER, TOKEN, WRITE_TOKEN, WRITER, command, served, stuck, until

import thresher

SERVE = [sys.executable, "-m", "thresher", "serve", "--storage", "memory"]


def test_it_prints_its_address_with_a_token_that_grants_access() -> None:
    argv = [*SERVE, "--port", "0"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            entry = process.stdout.readline().strip()
            reply = httpx.get(entry)
            assert (reply.status_code, reply.headers["location"]) == (303, "/")
            assert httpx.get(entry, follow_redirects=True).url.query in (b"", b"token=")
        finally:
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=60)
    assert errors == ""


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--host", "0.0.0.0"], "--allow-host"),
        (["--host", "0"], "--allow-host"),
        (["--host", ""], "neither an address nor a name"),
        (["--host", "nobody.invalid"], "neither an address nor a name"),
        (["--storage", f"sqlite:///{__file__}"], "is not an SQLite file"),
        (["--token", "short"], "8 to 200"),
        (["--allow-host", "http://x/"], "NAME or NAME:PORT"),
        (["--host", "203.0.113.7"], "give --host an address of this machine"),
        (["--write-token", "long-enough"], "add --write"),
        (["--write", "--write-token", "short"], "--write-token"),
        (["--write", "--token", "the-same-one", "--write-token", "the-same-one"], "must differ"),
        (["--tls-cert", __file__], "cannot be used"),
        (["--tls-cert", "nowhere.pem"], "No such file"),
        (["--tls-key", __file__], "--tls-cert"),
    ],
)
def test_wrong_use_is_one_line(options: list[str], words: str) -> None:
    done = command("serve", "--storage", "memory", "--port", "0", *options)
    assert (done.returncode, done.stdout) in ((2, ""), (3, ""))
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_with_write_it_prints_a_token_to_read_and_one_to_write() -> None:
    argv = [*SERVE, "--port", "0", "--write"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            reading, writing = (process.stdout.readline().strip() for _ in range(2))
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)
    url, _, token = reading.partition("/?token=")
    assert writing.startswith(f"to write: {url}/?token=")
    assert token not in writing


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[str, str]:
    """A certificate for 127.0.0.1 that signs itself."""
    cert, key = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    names = ["-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1"]
    kind = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    done = subprocess.run(["openssl", "req", *kind, *names, "-keyout", key, "-out", cert], capture_output=True)
    if done.returncode:
        pytest.skip("there is no openssl here")
    return cert, key


def test_tls_encrypts_and_makes_the_cookie_secure(certificate: tuple[str, str], tmp_path: Path) -> None:
    cert, key = certificate
    log = tmp_path / "log"
    context = ssl.create_default_context(cafile=cert)
    options = ["--write", "--tls-cert", cert, "--tls-key", key]
    with (
        served("memory", *options, log=log) as server,
        httpx.Client(verify=context, timeout=60) as client,
    ):
        assert server.entry.startswith("https://")
        reply = client.get(server.entry)
        assert (reply.status_code, "Secure" in reply.headers["set-cookie"].split("; ")) == (303, True)
        assert client.get(f"{server.url}/api/studies").json()["studies"] == []
        address = ("127.0.0.1", int(server.url.rpartition(":")[2]))
        with socket.create_connection(address) as plain:
            plain.sendall(b"GET / HTTP/1.1\r\n\r\n")
            with contextlib.suppress(ConnectionResetError):
                assert b"HTTP" not in plain.recv(100)
        assert client.get(f"{server.url}/healthz").status_code == 200
    assert log.read_text() == ""


def test_other_machines_without_encryption_are_a_warning(certificate: tuple[str, str], tmp_path: Path) -> None:
    cert, key = certificate
    for options, lines in (([], 1), (["--tls-cert", cert, "--tls-key", key], 0)):
        log = tmp_path / "log"
        host = ["--host", "0.0.0.0", "--allow-host", "127.0.0.1"]
        with served("memory", *host, *options, log=log):
            pass
        assert log.read_text().count("without encryption") == log.read_text().count("\n") == lines


def test_a_taken_port_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        done = command("serve", "--storage", "memory", "--port", port)
    assert done.returncode == 2
    assert "in use" in done.stderr


def test_it_ends_while_a_page_is_open(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/s.db"
    thresher.create_study("coins", arms=["a"], at_least=0.5, budget=4, storage=storage)
    ended = threading.Event()
    with served(storage) as server, httpx.Client(headers=BEARER, timeout=60) as client:
        looking = threading.Event()

        def look() -> None:
            try:
                with client.stream("GET", f"{server.url}/api/studies/coins/stream?after=1") as stream:
                    for _ in stream.iter_lines():
                        looking.set()
            except httpx.HTTPError:
                pass
            ended.set()

        threading.Thread(target=look, daemon=True).start()
        assert looking.wait(60)
    assert ended.wait(60)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)])
def test_it_ends_at_once_while_a_write_waits_for_another_process(
    tmp_path: Path, number: signal.Signals, status: int
) -> None:
    storage, log = f"sqlite:///{tmp_path}/s.db", tmp_path / "log"
    thresher.create_study("coins", arms=["a"], at_least=0.5, budget=100, storage=storage)
    code = "import thresher.log.locks as locks; locks.SAID_AFTER = 0.2; from thresher.cli import main; main()"
    argv = [sys.executable, "-c", code, "serve", "--storage", storage, "--port", "0"]
    argv += ["--write", "--token", TOKEN, "--write-token", WRITE_TOKEN]
    statuses: list[int] = []

    def ask(url: str) -> None:
        try:
            statuses.append(httpx.post(f"{url}/api/studies/coins/ask", headers=WRITER, timeout=60).status_code)
        except httpx.HTTPError:
            statuses.append(0)

    with log.open("wb") as errors, subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=errors, text=True) as process:
        assert process.stdout
        url = process.stdout.readline().partition("/?")[0]
        ask(url)
        with stuck(tmp_path / "s.db"):
            askers = [threading.Thread(target=ask, args=(url,)) for _ in range(30)]
            for asker in askers:
                asker.start()
            until(lambda: "waiting for" in log.read_text())
            start = time.monotonic()
            process.send_signal(number)
            assert process.wait(60) == status
            assert time.monotonic() - start < 15  # 1 s or so on a machine that does nothing else; a write waits for 20
        for asker in askers:
            asker.join()
    assert statuses[0] == 200
    assert 200 not in statuses[1:]
    assert thresher.open_study("coins", storage=storage).verdict().issued == 1
    lines = log.read_text().splitlines()
    assert all(line.startswith("thresher: ") for line in lines if line)  # click ends the line of a Ctrl-C


def test_its_log_has_lines_of_this_program_without_control_characters_and_queries(tmp_path: Path) -> None:
    storage, log = f"sqlite:///{tmp_path}/s.db", tmp_path / "log"
    name = "a\x1b[31mb\u202e"
    code = (
        "import sys, thresher.web.served_studies as served_studies\n"
        f"def live(self, name): raise RuntimeError('no {name!s} here')\n"
        "served_studies.ServedStudies.live_study = live\n"
        "from thresher.cli import main; main()"
    )
    thresher.create_study("coins", arms=["a"], at_least=0.5, storage=storage)
    argv = [sys.executable, "-c", code, "serve", "--storage", storage, "--port", "0", "--token", TOKEN]
    with log.open("wb") as errors, subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=errors, text=True) as process:
        try:
            assert process.stdout
            url = process.stdout.readline().partition("/?")[0]
            path = "/api/studies/x%0Athresher:%20forged%1b[2J/events?after=75319753197531"
            assert httpx.get(f"{url}{path}", headers=BEARER, timeout=60).status_code == 500
        finally:
            process.terminate()
    text = log.read_text()
    assert text.startswith("thresher: GET /api/studies/x%0Athresher")
    assert "no a\\x1b[31mb\\u202e here" in text or "no ab\\u202e here" in text  # colours are left out
    assert not [char for char in text if not char.isprintable() and char != "\n"]
    assert "75319753197531" not in text


def test_what_another_process_does_comes_through_the_stream(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/s.db"
    study = thresher.create_study("coins", arms=["a", "b"], at_least=0.5, budget=9, storage=storage)
    log = tmp_path / "log"
    with served(storage, log=log) as server, httpx.Client(headers=BEARER, timeout=60) as client:
        with client.stream("GET", f"{server.url}/api/studies/coins/stream?after=1") as stream:
            lines = stream.iter_lines()
            assert next(lines) == "retry: 1000"
            pull = study.ask()
            assert pull
            study.tell(pull, 1)
            kinds = [line for line in (next(lines) for _ in range(3)) if line.startswith("event:")]
            assert kinds == ["event: change"]
        reply = client.post(f"{server.url}/api/studies/coins/ask")
        assert (reply.status_code, reply.json()["remedy"]) == (403, "start it with --write")
    assert TOKEN not in log.read_text()
