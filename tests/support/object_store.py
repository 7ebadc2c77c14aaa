"""A store of objects on this machine, with the interface of Amazon's S3."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

BUCKET = "logs"
KEY_ID, SECRET = "AKIDOFTHETESTS", "thesecretofthetests"


@dataclass
class Store:
    """A running store.

    Attributes
    ----------
    address
        Where it listens.
    sent
        The requests: method, path, and the number of bytes of the answer.
    refuses
        Whether it denies access, as to a user without rights.
    """

    address: str
    sent: list[tuple[str, str, int]] = field(default_factory=list)
    refuses: bool = False

    @property
    def environment(self) -> dict[str, str]:
        """Variables with which the client finds the store and its credentials."""
        return {
            "AWS_ENDPOINT_URL": self.address,
            "AWS_ACCESS_KEY_ID": KEY_ID,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def client(self) -> Any:
        """Return a client that may do everything."""
        import boto3

        return boto3.client(
            "s3",
            endpoint_url=self.address,
            region_name="us-east-1",
            aws_access_key_id=KEY_ID,
            aws_secret_access_key=SECRET,
        )

    def put(self, file: Path, key: str | None = None) -> str:
        """Store a file; return its address."""
        key = key or f"mysql/{file.name}"
        self.client().put_object(Bucket=BUCKET, Key=key, Body=file.read_bytes())
        return f"s3://{BUCKET}/{key}"

    def fetched(self) -> int:
        """Return the bytes of objects that were sent since the last call."""
        total = sum(size for method, path, size in self.sent if method == "GET" and path.count("/") > 1)
        self.sent.clear()
        return total


@contextmanager
def running_store() -> Iterator[Store]:
    """Run a store with an empty bucket."""
    store = Store("")
    application = DomainDispatcherApplication(create_backend_app)

    def counted(environ: Any, start: Any) -> Any:
        def started(status: str, headers: Any, *more: Any) -> Any:
            size = next((int(value) for name, value in headers if name.lower() == "content-length"), 0)
            store.sent.append((environ["REQUEST_METHOD"], environ["PATH_INFO"], size))
            return start(status, headers, *more)

        if store.refuses:
            start("403 Forbidden", [("Content-Length", "0")])
            return []
        return application(environ, started)

    class Silent(WSGIRequestHandler):
        def log(self, type: str, message: str, *args: Any) -> None:
            pass

    server = make_server("127.0.0.1", 0, counted, threaded=True, request_handler=Silent)
    store.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        store.client().create_bucket(Bucket=BUCKET)
        yield store
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
