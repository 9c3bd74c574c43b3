"""A program that is a package index and an npm registry over https: `ADDRESS PORT FOLDER`; it prints `ready`."""

import base64
import hashlib
import io
import json
import ssl
import sys
import tarfile
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

WHEEL, TARBALL = "septet_sample-1.0-py3-none-any.whl", "septet-sample-1.0.0.tgz"
_JSON = "application/json"


def write_packages(folder: Path) -> None:
    about = "septet_sample-1.0.dist-info"
    with zipfile.ZipFile(folder / WHEEL, "w") as wheel:
        wheel.writestr("septet_sample.py", "WORDS = 'from pip'\n")
        wheel.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: septet-sample\nVersion: 1.0\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(
            f"{about}/RECORD", f"septet_sample.py,,\n{about}/METADATA,,\n{about}/WHEEL,,\n{about}/RECORD,,\n"
        )
    files = {
        "package.json": json.dumps({"name": "septet-sample", "version": "1.0.0", "main": "index.js"}),
        "index.js": "module.exports = 'from npm'\n",
    }
    with tarfile.open(folder / TARBALL, "w:gz") as tarball:
        for name, text in files.items():
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size = len(text)
            tarball.addfile(entry, io.BytesIO(text.encode()))


class _Registry(BaseHTTPRequestHandler):
    folder: Path
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = self.path.rstrip("/")
        if path == "/simple/septet-sample":
            self._send("text/html", f'<!doctype html><a href="/files/{WHEEL}">{WHEEL}</a>'.encode())
        elif path == "/septet-sample":
            self._send(_JSON, json.dumps(self._about()).encode())
        elif path in {f"/files/{WHEEL}", f"/files/{TARBALL}"}:
            self._send("application/octet-stream", (self.folder / Path(path).name).read_bytes())
        else:
            self._send("text/plain", b"nothing", 404)

    def _about(self) -> dict[str, object]:
        digest = base64.b64encode(hashlib.sha512((self.folder / TARBALL).read_bytes()).digest()).decode()
        where = {"tarball": f"https://{self.headers['Host']}/files/{TARBALL}", "integrity": f"sha512-{digest}"}
        version = {"name": "septet-sample", "version": "1.0.0", "dist": where}
        return {"name": "septet-sample", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}

    def _send(self, kind: str, content: bytes, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the base class names it so
        pass


def serve(address: str, port: int, folder: Path) -> None:
    _Registry.folder = folder
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    server = ThreadingHTTPServer((address, port), _Registry)
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
