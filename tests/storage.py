"""A server of the S3 protocol on this machine, and what it is asked."""

import logging

from mistakes import SELECT, import_tiles, tiles
from moto.server import ThreadedMotoServer

import croma_sql
from croma_sql.places import is_local, place

ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "key",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",  # of a machine in a cloud, nobody is asked
}


class Storage:
    """moto, which other processes can reach too.

    environment : what leads to it
    asked : (method, path, query, range) of every request
    refused : by bucket, the status and code with which requests that match are refused
    """

    def __init__(self):
        self.asked = []
        self.refused = {}
        logging.getLogger("werkzeug").disabled = True
        self._server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        self._server.start()
        self._moto, self._server._server.app = self._server._server.app, self._answer
        host, port = self._server.get_host_and_port()
        self.environment = ENVIRONMENT | {"AWS_ENDPOINT_URL": f"http://{host}:{port}"}

    def stop(self):
        self._server.stop()

    def refuse(self, bucket, status, code, matches=lambda environ: True):
        """Answer requests to a bucket with an error, as S3 words it."""
        self.refused[bucket] = status, code, matches

    def _answer(self, environ, start_response):
        names = ("REQUEST_METHOD", "PATH_INFO", "QUERY_STRING", "HTTP_RANGE")
        self.asked.append(tuple(environ.get(name, "") for name in names))
        bucket = environ["PATH_INFO"].split("/")[1]
        status, code, matches = self.refused.get(bucket, ("", "", lambda _: False))
        if not matches(environ):
            return self._moto(environ, start_response)
        environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        start_response(status, [("Content-Type", "application/xml")])
        told = f"<Error><Code>{code}</Code><Message>{code}</Message></Error>"
        return [b"" if environ["REQUEST_METHOD"] == "HEAD" else told.encode()]


def bucket(name):
    """Make a bucket; gives its place."""
    root = place(f"s3://{name}")
    root.fs.mkdir(name)
    return root


def contents(root):
    if is_local(root):
        return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}
    names = root.fs.find(root.path)
    return {name.removeprefix(f"{root.path}/"): root.fs.cat_file(name) for name in names}


def import_and_benchmark(root):
    frame = tiles()
    import_tiles(root, frame)
    croma_sql.add_benchmark(root, "b", SELECT)
    return frame
