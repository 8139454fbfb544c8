"""The deployed artifacts, run as Lambda runs them: by the real runtime client, with a queue that redelivers."""

from __future__ import annotations

import gzip
import json
import sys
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
import jwt
import psycopg
import pytest
from moto.server import ThreadedMotoServer
from PIL import Image, ImageDraw, ImageFont

from functions.local.packaging import ocr_layer, packages
from tests.handlers import events
from tests.handlers.events import Json
from tests.support import database as database_servers
from tests.support import documents, page_files, service
from tests.support.fakes import runtime_api, storage_refusals, storage_server
from tests.support.fakes.model_server import FakeModelServer, Reply, answer_json, pieces
from tests.support.lambda_platform import PARAMETERS, Function, Platform, set_of
from tests.support.requirements import missing, need_tesseract

JWT_SECRET = "a secret that a project still signs its tokens with"
CRON_SECRET, WEBHOOK_SECRET = "cron-secret-of-the-tests", "webhook-secret-of-the-tests"
METRICS_TOKEN = "metrics-token-of-the-tests"
OPERATOR = {"authorization": f"Bearer {METRICS_TOKEN}"}
MAX_RECEIVES = 3
POISON = "nobody can read this"
QUESTION = "What does the boiler of the lighthouse burn?"
PAUSE = 0.1
TEXT = "The boiler of the lighthouse burns driftwood."


@dataclass
class Cloud:
    """An installation: its functions, each started at its first use, and the services around them."""

    platform: Platform
    dsn: str
    supabase_url: str
    queue: Any
    queue_url: str
    dead_letters_url: str
    user: str = field(default_factory=lambda: str(uuid4()))
    _started: dict[str, Function] = field(default_factory=dict)
    _stack: ExitStack = field(default_factory=ExitStack)

    def __getitem__(self, name: str) -> Function:
        if name not in self._started:
            self._started[name] = self._stack.enter_context(self.platform.start(name))
        return self._started[name]

    @property
    def headers(self) -> Json:
        claims = {"sub": self.user, "role": "authenticated", "aud": "authenticated", "exp": int(time.time()) + 600}
        issuer = {"iss": f"{self.supabase_url}/auth/v1"}
        return {"authorization": f"Bearer {jwt.encode(claims | issuer, JWT_SECRET, 'HS256')}"}

    def send(self, name: str, method: str, path: str, body: Any = None, **options: Any) -> events.Answer:
        """A request by a signed-in user, which the gateway sends to the function `name`."""
        return self[name].send(method, path, body, headers=self.headers, **options)

    def upload(self, file_name: str, content: bytes) -> Json:
        """Uploads a file: announces it, stores it, and lets the storage's webhook queue it."""
        body = {"file_name": file_name, "size": len(content)}
        announced = self.send("documents", "POST", "/api/rag/documents", body).json
        upload, document = announced["upload"], announced["document"]
        put = urllib.request.Request(upload["url"], content, upload["headers"], method="PUT")
        urllib.request.urlopen(put).close()
        webhook = events.load("storage_insert") | {"record": self.read_object(document["id"])}
        secret = {"x-webhook-secret": WEBHOOK_SECRET}
        answer = self["storageEvent"].send("POST", "/api/hooks/storage", webhook, headers=secret)
        assert answer.status == 202, answer.content
        assert answer.json["job_id"] is not None
        return dict(document)

    def read_object(self, document_id: str) -> Json:
        """The row that the storage has written, as its webhook sends it."""
        with psycopg.connect(self.dsn) as connection:
            rows = connection.execute(
                "select to_jsonb(o) from storage.objects o where name like %s", (f"%{document_id}%",)
            ).fetchall()
        ((row,),) = rows
        return dict(row)

    def deliver(self) -> list[str]:
        """Delivers one batch as Lambda polls the queue: messages that the function does not report are deleted.

        Returns the bodies of the failed messages.
        """
        sample = events.load("sqs")["Records"][0]
        received = self.queue.receive_message(QueueUrl=self.queue_url, MaxNumberOfMessages=10).get("Messages", [])
        records = [
            sample | {"messageId": m["MessageId"], "receiptHandle": m["ReceiptHandle"], "body": m["Body"]}
            for m in received
        ]
        answer = self["ingest"].invoke({"Records": records}) if records else {"batchItemFailures": []}
        failed = {failure["itemIdentifier"] for failure in answer["batchItemFailures"]}
        for message in received:
            if message["MessageId"] not in failed:
                self.queue.delete_message(QueueUrl=self.queue_url, ReceiptHandle=message["ReceiptHandle"])
        return [message["Body"] for message in received if message["MessageId"] in failed]

    def count(self, url: str) -> int:
        found = self.queue.get_queue_attributes(QueueUrl=url, AttributeNames=["ApproximateNumberOfMessages"])
        return int(found["Attributes"]["ApproximateNumberOfMessages"])

    def close(self) -> None:
        self._stack.close()


@pytest.fixture(scope="module")
def queues() -> Iterator[tuple[Any, str, str, str]]:
    """A client of SQS, and the addresses of the server, the ingest queue and its dead-letter queue."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    keys = {"aws_access_key_id": "none", "aws_secret_access_key": "none", "region_name": runtime_api.REGION}
    client = boto3.client("sqs", endpoint_url=f"http://{host}:{port}", **keys)
    dead = client.create_queue(QueueName="ibid-dev-ingest-dead")["QueueUrl"]
    arn = client.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    redrive = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": MAX_RECEIVES})
    attributes = {"VisibilityTimeout": "0", "RedrivePolicy": redrive}
    queue = client.create_queue(QueueName="ibid-dev-ingest", Attributes=attributes)["QueueUrl"]
    yield client, f"http://{host}:{port}", queue, dead
    client.close()
    server.stop()


@pytest.fixture(scope="module")
def cloud(
    clusters: database_servers.Clusters,
    postgres_major: int,
    tmp_path_factory: pytest.TempPathFactory,
    queues: tuple[Any, str, str, str],
) -> Iterator[Cloud]:
    if sys.platform != "linux":
        missing("Linux, which the runtime client of Lambda is built for")
    need_tesseract()
    cluster = clusters.get(postgres_major)
    dsn = cluster.clone()
    client, endpoint, queue_url, dead_letters_url = queues
    with storage_server.run(dsn) as storage, FakeModelServer() as model:
        variables = {
            "DATABASE_URL": dsn,
            "SUPABASE_URL": storage.url,
            "SUPABASE_SECRET_KEY": storage_refusals.KEY,
            "SUPABASE_JWT_SECRET": JWT_SECRET,
            "OPENAI_API_KEY": "none",
            "OPENAI_BASE_URL": model.base_url,
            "CHAT_MODEL": "fake",
            "EMBEDDING_MODEL": "fake",
            "EMBEDDING_DIMENSIONS": str(model.dimensions),
            "CRON_SECRET": CRON_SECRET,
            "METRICS_TOKEN": METRICS_TOKEN,
            "WEBHOOK_SECRET": WEBHOOK_SECRET,
            "INGEST_QUEUE_URL": queue_url,
            "AWS_ENDPOINT_URL_SQS": endpoint,
        }
        layer = ocr_layer.build(packages.HOST, "eng+fra")
        model.respond = answer_slowly
        with Platform(tmp_path_factory.mktemp("lambda"), variables, layer) as platform:
            cloud = Cloud(platform, dsn, storage.url, client, queue_url, dead_letters_url)
            yield cloud
            cloud.close()
    cluster.drop(dsn)


def answer_slowly(body: Json) -> Reply:
    prompt = str(body["messages"][-1]["content"])
    segment = prompt.split("[SEG=")[1].split("]")[0] if "[SEG=" in prompt else ""
    return Reply(pieces(answer_json((TEXT, [segment], [TEXT])), 20), delay=PAUSE)


@pytest.fixture(scope="module")
def document(cloud: Cloud, tmp_path_factory: pytest.TempPathFactory) -> Json:
    """A PDF that arrived in a batch with an unreadable message and was indexed."""
    content = documents.make_pdf(tmp_path_factory.mktemp("files") / "boiler.pdf", TEXT).read_bytes()
    document = cloud.upload("boiler.pdf", content)
    cloud.queue.send_message(QueueUrl=cloud.queue_url, MessageBody=POISON)
    assert cloud.deliver() == [POISON]
    return document


@pytest.fixture(scope="module")
def conversation(cloud: Cloud, document: Json) -> str:
    answer = cloud.send("chat", "POST", "/api/rag/chat", {"query": QUESTION}).json
    assert (answer["mode"], answer["sources"][0]["document_id"]) == ("model", document["id"])
    return str(answer["conversation_id"])


# The queue


def test_scans_are_read_with_the_ocr_layer(cloud: Cloud, tmp_path: Path) -> None:
    """ING-2"""
    picture = Image.new("L", (1700, 500), 255)
    ImageDraw.Draw(picture).text((100, 200), "The keeper lights it at dusk.", 0, ImageFont.load_default(64))
    picture.save(tmp_path / "scan.pdf", resolution=200)
    document = cloud.upload("scan.pdf", (tmp_path / "scan.pdf").read_bytes())
    assert cloud.deliver() == []
    text = cloud.send("documents", "GET", f"/api/rag/documents/{document['id']}/text").json
    assert [page["text"].strip() for page in text["pages"]] == ["The keeper lights it at dusk."]


def test_only_the_poisoned_message_is_redelivered_and_ends_as_a_dead_letter(cloud: Cloud, document: Json) -> None:
    """ING-10"""
    found = cloud.send("documents", "GET", f"/api/rag/documents/{document['id']}").json
    assert (found["status"], found["chunk_count"]) == ("indexed", 1)
    assert [cloud.deliver() for _ in range(MAX_RECEIVES)] == [[POISON]] * (MAX_RECEIVES - 1) + [[]]
    (dead,) = cloud.queue.receive_message(QueueUrl=cloud.dead_letters_url)["Messages"]
    assert dead["Body"] == POISON
    assert cloud.count(cloud.queue_url) == 0


def test_a_webhook_without_the_secret_starts_no_worker(cloud: Cloud) -> None:
    """SEC-5"""
    webhook = events.load("storage_insert")
    answer = cloud["storageEvent"].send("POST", "/api/hooks/storage", webhook, headers={"x-webhook-secret": "guess"})
    assert answer.problem == (401, "not_signed_in")


# Requests


def test_the_database_figures_are_shown_at_metrics(cloud: Cloud, document: Json) -> None:
    """OPS-3"""
    answer = cloud["page"].send("GET", "/metrics", headers=OPERATOR)
    assert "\nai_index_jobs_due 0.0\n" in answer.content.decode()


def test_pages_are_rendered_and_files_downloaded(cloud: Cloud, document: Json) -> None:
    picture = cloud.send("drawing", "GET", f"/api/rag/documents/{document['id']}/pages/1.png", query="start=0&end=9")
    assert (picture.status, picture.content[:4]) == (200, b"\x89PNG")
    download = cloud.send("documents", "GET", f"/api/rag/documents/{document['id']}/download")
    with urllib.request.urlopen(download.headers.get("location") or download.json["url"]) as file:
        assert file.read(5) == b"%PDF-"


def test_passages_are_found(cloud: Cloud, document: Json) -> None:
    answer = cloud.send("search", "GET", "/api/rag/search", query="q=driftwood")
    assert answer.json["hits"][0]["document_id"] == document["id"]


def test_a_conversation_is_listed_exported_and_saved_as_a_note(cloud: Cloud, conversation: str) -> None:
    assert cloud.send("conversations", "GET", "/api/rag/conversations").json["items"][0]["id"] == conversation
    messages = cloud.send("conversations", "GET", f"/api/rag/conversations/{conversation}/messages").json["items"]
    assert [message["role"] for message in messages] == ["user", "assistant"]
    export = cloud.send("conversations", "GET", f"/api/rag/conversations/{conversation}/export")
    assert TEXT in export.content.decode()
    path = f"/api/rag/conversations/{conversation}/messages/{messages[1]['id']}/note"
    note = cloud.send("conversations", "POST", path, {})
    assert note.status == 201, note.content
    assert cloud.deliver() == []
    found = cloud.send("notebooks", "GET", f"/api/rag/notes/{note.json['id']}").json
    assert found["status"] == "indexed"


def test_openai_clients_are_answered(cloud: Cloud, document: Json) -> None:
    body = {"model": "ibid", "messages": [{"role": "user", "content": QUESTION}]}
    answer = cloud.send("chat", "POST", "/v1/chat/completions", body).json
    assert TEXT in answer["choices"][0]["message"]["content"]


def test_assistants_call_tools(cloud: Cloud, document: Json) -> None:
    call = {"name": "document_search", "arguments": {"query": "driftwood"}}
    body = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": call}
    accept = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18"}
    answer = cloud["mcp"].send("POST", "/mcp", body, headers=cloud.headers | accept)
    assert TEXT in answer.content.decode()


def test_deleting_a_notebook_removes_its_files_from_the_storage(cloud: Cloud) -> None:
    notebook = cloud.send("notebooks", "POST", "/api/rag/notebooks", {"title": "Lighthouse"}).json
    document = cloud.upload("keeper.txt", b"The keeper of the lighthouse is Ada.")
    assert cloud.deliver() == []
    moved = cloud.send("documents", "PATCH", f"/api/rag/documents/{document['id']}", {"notebook_id": notebook["id"]})
    assert moved.status == 200, moved.content
    receipt = cloud.send("notebooks", "DELETE", f"/api/rag/notebooks/{notebook['id']}", query="contents=delete").json
    assert receipt["removed"]["objects"] == 1


def test_settings_are_read(cloud: Cloud) -> None:
    assert cloud.send("settings", "GET", "/api/rag/settings").json["retention_days"] == 30


def test_the_page_is_served_and_readiness_is_ok(cloud: Cloud) -> None:
    """WEB-1"""
    html = gzip.decompress(cloud["page"].send("GET", "/").content).decode()
    script = cloud["page"].send("GET", page_files.script_of(html))
    assert (script.status, script.headers["content-encoding"]) == (200, "gzip")
    assert b"async function main()" in gzip.decompress(script.content)
    ready = cloud["page"].send("GET", "/ready", headers=OPERATOR).json
    assert ready["status"] == "ok", ready["checks"]


def test_without_an_embedding_server_full_text_is_searched_and_readiness_names_the_variable(
    cloud: Cloud, clusters: database_servers.Clusters, postgres_major: int, tmp_path: Path
) -> None:
    """OPS-4: the local model of a laptop is not deployed."""
    cluster = clusters.get(postgres_major)
    dsn = cluster.clone()
    unset = {name: value for name, value in cloud.platform.variables.items() if not name.startswith("EMBEDDING_")}
    with (
        Platform(tmp_path / "lambda", unset | {"DATABASE_URL": dsn}) as platform,
        platform.start("search") as search,
        platform.start("page") as page,
    ):
        found = search.send("GET", "/api/rag/search", headers=cloud.headers, query="q=boiler")
        models = page.send("GET", "/ready", headers=OPERATOR).json["checks"]["models"]
    cluster.drop(dsn)
    assert (found.status, found.json["degraded"]) == (200, ["multilingual-e5-small (local)"])
    assert (models["ok"], models["detail"].partition(": ")[2]) == (
        False,
        "functions do not contain the local model. Set EMBEDDING_MODEL.",
    )


# Secrets


def test_each_function_reads_its_secrets_once_and_as_its_own_role(cloud: Cloud, document: Json) -> None:
    """SEC-8: the store refuses what the role of a function may not read."""
    asked = [request["body"]["Names"] for request in cloud.platform.store.requests]
    expected = [[f"{PARAMETERS}/{secret}" for secret in service.secrets(name)] for name in ("documents", "ingest")]
    assert [asked.count(names) >= 1 for names in expected] == [True, True]
    before = len(asked)
    cloud.send("documents", "GET", f"/api/rag/documents/{document['id']}")
    assert len(cloud.platform.store.requests) == before


def test_the_environment_of_a_function_has_no_secret(cloud: Cloud) -> None:
    """SEC-8"""
    environments = [cloud.platform.environment(name).values() for name in service.functions()]
    assert not {CRON_SECRET, WEBHOOK_SECRET, METRICS_TOKEN, JWT_SECRET, cloud.dsn} & set().union(*environments)


# Schedules


def test_scheduled_functions_run(cloud: Cloud) -> None:
    """OPS-1, OPS-2, RET-3"""
    assert cloud["sweeper"].invoke(events.load("schedule"))["due"] == []
    assert cloud["retention"].invoke(events.load("schedule")) == {"deleted": 0}
    assert cloud["vectorIndexes"].invoke(events.load("schedule")) == {"built": [], "segments": []}
    bearer = {"authorization": f"Bearer {CRON_SECRET}"}
    assert cloud["retention"].send("GET", "/api/cron/retention", headers=bearer).json == {"deleted": 0}


# Streaming


@pytest.fixture(scope="module")
def streaming_url(cloud: Cloud) -> Iterator[str]:
    with cloud.platform.start_behind_web_adapter("chatStream") as url:
        yield url


def test_answers_are_streamed_piece_by_piece_behind_the_web_adapter(
    cloud: Cloud, document: Json, streaming_url: str
) -> None:
    """CHAT-2"""
    body = json.dumps({"query": QUESTION, "stream": True}).encode()
    headers = cloud.headers | {"content-type": "application/json"}
    ask = urllib.request.Request(f"{streaming_url}/api/rag/chat", body, headers)
    with urllib.request.urlopen(ask) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        came = [(time.monotonic(), json.loads(line[6:])) for line in answer if line.startswith(b"data: {")]
    texts = [at for at, event in came if "text" in event]
    assert len(texts) > 1
    assert texts[-1] - texts[0] > PAUSE
    assert "".join(event.get("text", "") for _, event in came).strip() == TEXT
    assert came[-1][1]["done"]


@pytest.mark.parametrize(("path", "code"), [("/api/rag/chat", ["code"]), ("/v1/chat/completions", ["error", "code"])])
def test_the_streaming_function_needs_a_token(streaming_url: str, path: str, code: list[str]) -> None:
    """CHAT-2: the Function URL has no authorizer."""
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(urllib.request.Request(f"{streaming_url}{path}", b"{}", method="POST"))
    with refused.value as answer:
        assert (answer.code, reduce(getitem, code, json.load(answer))) == (401, "not_signed_in")


# File access


def test_functions_write_only_to_scratch_and_clear_it(cloud: Cloud) -> None:
    """No bytecode is written beside the artifact, and no file that a function read is left behind."""
    for name in service.functions():
        root = cloud.platform.task_root(set_of(name))
        with zipfile.ZipFile(cloud.platform.artifact(set_of(name))) as artifact:
            assert sorted(artifact.namelist()) == sorted(
                str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()
            )
    assert list(cloud.platform.temporary.iterdir()) == []
