"""Runs the tests in the Lua files of this folder inside of nginx, in both modes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import nginx
import pytest

FILES = ["calls", "streams"]


def names(file: str) -> list[str]:
    """The tests of a file: the functions of its module, except `init_worker`."""
    text = (Path(__file__).parent / f"{file}.lua").read_text()
    return [
        name
        for name in re.findall(r"^function M\.(\w+)\(", text, re.MULTILINE)
        if name != "init_worker"
    ]


@pytest.fixture(scope="module", params=nginx.MODES)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[nginx.Nginx]:
    folder = tmp_path_factory.mktemp("nginx")
    init = " ".join(f'require("{file}").init_worker()' for file in FILES)
    with nginx.started(
        folder,
        f"init_worker_by_lua_block {{ {init} }}",
        """
        location /run/ {
          location ~ /run/(.*) { set $file $1; content_by_lua_block { require("check").run(require(ngx.var.file)) } }
        }
        """,
        mode=request.param,
    ) as running:
        yield running
    assert not running.alerts()


@pytest.mark.parametrize(
    ("file", "name"), [(file, name) for file in FILES for name in names(file)]
)
def test_in_nginx(server: nginx.Nginx, file: str, name: str) -> None:
    response = server.get(f"/run/{file}?name={name}")
    assert response.text == "ok", server.alerts()
