"""A real nginx on loopback, configured as `deploy/nginx.conf` says, for a server under test."""

import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pages import ROOT
from served import free_port

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
"""Where it is; None: nowhere."""

AROUND = """
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
{user}
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    {site}
}}
"""


def _written(folder: Path, upstream: str, listen: str) -> Path:
    """Our example, but for addresses and certificates."""
    site = (ROOT / "deploy" / "nginx.conf").read_text(encoding="utf-8")
    site = re.sub(r"^ *(listen|ssl_).*\n", "", site, flags=re.MULTILINE)
    site = site.replace("127.0.0.1:8717", upstream)
    site = site.replace("server_name", f"listen {listen};\n    server_name")
    user = "user root;" if hasattr(os, "geteuid") and os.geteuid() == 0 else ""
    file = folder / "nginx.conf"
    file.write_text(AROUND.format(folder=folder, user=user, site=site), encoding="utf-8")
    return file


def checked(folder: Path) -> str:
    """What nginx says of our example."""
    file = _written(folder, "127.0.0.1:8717", f"127.0.0.1:{free_port()}")
    assert NGINX is not None
    done = subprocess.run(  # noqa: S603 - nginx, and our own file
        [NGINX, "-t", "-c", file], capture_output=True, text=True, timeout=30, check=False
    )
    return done.stderr


@contextmanager
def proxied(url: str, folder: Path) -> Iterator[str]:
    """Put nginx before the server at this address; give where it listens, on all of 127.0.0.0/8."""
    port = free_port()
    file = _written(folder, url.removeprefix("http://"), str(port))
    assert NGINX is not None
    process = subprocess.Popen([NGINX, "-c", file], stderr=subprocess.DEVNULL)  # noqa: S603
    try:
        deadline = time.monotonic() + 20
        while True:
            with socket.socket() as asking:
                if asking.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert process.poll() is None, (folder / "error.log").read_text()
            assert time.monotonic() < deadline, "nginx did not start"
            time.sleep(0.02)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(10)
