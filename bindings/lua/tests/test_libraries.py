"""Opening libraries: phases, wrong libraries, and the choice of the mode."""

import shutil
import subprocess
from pathlib import Path

import nginx
import pytest

LIBRARY = nginx.LIBRARIES / "libthalweg_search.so"


def opened(folder: Path, path: Path | str) -> str:
    """The error of a worker that opens the search library at this path."""
    server = f"""location / {{ content_by_lua_block {{
      local client, err = require("search").open("{path}")
      ngx.print(client and "open" or tostring(err))
    }} }}"""
    with nginx.started(folder, "", server) as running:
        text = running.get("/").text
        assert running.get("/").text == text
    assert not running.alerts()
    return text


def test_library_is_opened_by_its_path(tmp_path: Path) -> None:
    assert opened(tmp_path, LIBRARY) == "open"


@pytest.mark.parametrize(
    ("path", "error"),
    [
        (
            "/no/such/library.so",
            "argument: cannot load the library for thalweg:search@0.1.0: /no/such/library.so",
        ),
        ("", "argument: thalweg:search: path"),
        (__file__, "argument: cannot load the library"),
        (
            nginx.LIBRARIES / "libthalweg_echo.so",
            "version: built for thalweg:search@0.1.0, but the library is thalweg:echo",
        ),
    ],
)
def test_wrong_path_is_refused(tmp_path: Path, path: Path | str, error: str) -> None:
    assert opened(tmp_path, path).startswith(error)


GUEST = f"thread:{nginx.BUILD}/guests/libguest_probe.so"
CORE = f"env THALWEG_LIBRARY={nginx.LIBRARIES}/libthalweg.so;"


def test_guest_is_opened_by_its_address(tmp_path: Path) -> None:
    """A guest in C serves each worker's calls, and a wrong address is refused."""
    server = f"""location / {{ content_by_lua_block {{
      local probe = require "probe"
      local client = assert(probe.open("{GUEST}"))
      local _, lost = client:misbehave(1)
      local _, refused = probe.open("process:guest")
      ngx.say(client:echo("text"), " ", lost.code, " ", refused.code, " ", refused.message)
    }} }}"""
    with nginx.started(tmp_path, "", server, main=CORE) as running:
        first, second = (running.get("/").text for _ in range(2))
    expected = "text guest_lost argument process:guest: this version opens only guests"
    assert first.startswith(expected)
    assert first == second
    assert not running.alerts()


def test_guest_is_opened_with_the_core_in_the_package(tmp_path: Path) -> None:
    """An installed package contains libthalweg.so."""
    # The first folder where the workers look for Lua.
    shutil.copytree(nginx.ROOT / "bindings/lua/lib", tmp_path, dirs_exist_ok=True)
    shutil.copy(nginx.LIBRARIES / "libthalweg.so", tmp_path / "thalweg")
    server = f"""location / {{ content_by_lua_block {{
      local client = assert(require("probe").open("{GUEST}"))
      ngx.say(client:echo("text"))
      ngx.print(io.open("/proc/self/maps"):read("*a"):match("%S*/libthalweg.so"))
    }} }}"""
    with nginx.started(tmp_path, "", server) as running:
        assert running.get("/").text == f"text\n{tmp_path}/thalweg/libthalweg.so"
        assert not running.alerts()


@pytest.mark.parametrize(
    ("macros", "error"),
    [
        (
            ["FAKE_NO_SYMBOL"],
            "argument: built for thalweg:search@0.1.0, but this is no Thalweg library",
        ),
        (
            ["FAKE_NO_TABLE"],
            "version: built for thalweg:search@0.1.0 (abi 2), but the library offers no table",
        ),
        (
            ["FAKE_ABI=99"],
            "version: built for abi 2 (thalweg:search@0.1.0), but the library has abi 99",
        ),
        (["FAKE_SIZE=64"], "version: built for a table of"),
        (
            ['FAKE_PACKAGE="a:b"'],
            "version: built for thalweg:search@0.1.0, but the library is a:b@0.1.0",
        ),
        (
            ['FAKE_VERSION="0.2.0"'],
            "version: built for thalweg:search@0.1.0, but the library is thalweg:search@0.2.0",
        ),
        ([], "version: built for thalweg:search@0.1.0 with layout"),
    ],
)
def test_wrong_library_is_refused(
    tmp_path: Path, macros: list[str], error: str
) -> None:
    source = nginx.ROOT / "bindings/python/tests/fake.c"
    library = tmp_path / "fake.so"
    subprocess.run(
        [
            "cc",
            "-shared",
            "-fPIC",
            f"-I{nginx.ROOT}/bindings/c/include",
            *(f"-D{one}" for one in macros),
            source,
            "-o",
            library,
        ],
        check=True,
    )
    assert opened(tmp_path, library).startswith(error)


def test_library_is_not_opened_before_the_fork(tmp_path: Path) -> None:
    init = f"""init_by_lua_block {{
      local client, err = require("search").open("{LIBRARY}")
      package.loaded.refused = client == nil and tostring(err)
    }}"""
    server = "location / { content_by_lua_block { ngx.print(package.loaded.refused) } }"
    with nginx.started(tmp_path, init, server) as running:
        text = running.get("/").text
    assert text.startswith(
        "argument: thalweg:search: a library cannot be opened in the phase init"
    )
    assert "init_worker_by_lua_block" in text


@pytest.mark.parametrize("mode", nginx.MODES)
def test_phase_that_cannot_wait_refuses_calls(tmp_path: Path, mode: str) -> None:
    init = f"""init_worker_by_lua_block {{
      client = require("conformance").open("{nginx.LIBRARIES}/libthalweg_conformance.so")
      seen, done = {{}}, false
      function try(phase)
        local value, err = client:echo_u8(7)
        seen[#seen + 1] = phase .. " " .. (value or tostring(err))
        local twice = client:twice(4)
        assert(twice == 8ULL, phase)
        return value
      end
      try("init_worker")
    }}"""
    server = """
    location /all {
      set_by_lua_block $unused { try("set") }
      rewrite_by_lua_block { try("rewrite") }
      access_by_lua_block { try("access") }
      content_by_lua_block { try("content") ngx.print("body") }
      header_filter_by_lua_block { try("header_filter") }
      body_filter_by_lua_block { if ngx.arg[2] then try("body_filter") end }
      log_by_lua_block { try("log") ngx.timer.at(0, function() try("timer") done = true end) }
    }
    location /seen { content_by_lua_block {
      while not done do ngx.sleep(0.001) end
      ngx.print(table.concat(seen, "\\n"))
    } }"""
    with nginx.started(tmp_path, init, server, mode=mode) as running:
        assert running.get("/all").text == "body"
        lines = running.get("/seen").text.splitlines()
    assert not running.alerts()
    results = dict(line.split(" ", 1) for line in lines)
    for phase in ("rewrite", "access", "content", "timer"):
        assert results[phase] == "7"
    for phase in ("init_worker", "set", "header_filter", "body_filter", "log"):
        assert results[phase].startswith(
            "would_park: conformance.echo-u8: Lua code cannot wait in the phase"
        )


MODE = """location / { content_by_lua_block {
  assert(client:version())
  ngx.print(client._port.waker.mode)
} }"""
ECHO = f'init_worker_by_lua_block {{ client = assert(require("echo").open("{nginx.LIBRARIES}/libthalweg_echo.so")) }}'


def cpath(folder: Path) -> str:
    return f'lua_package_cpath "{folder}/?.so;;";'


def test_module_is_also_found_without_load_module(tmp_path: Path) -> None:
    with nginx.started(tmp_path, cpath(nginx.BUILD / "lua") + ECHO, MODE) as running:
        assert running.get("/").text == "B"
    assert not running.alerts()


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (
            "unsigned thalweg_nginx_version(void) { return 1018000; }",
            "compiled for nginx 1018000, and this is",
        ),
        ("int something_else;", "cannot be loaded"),
        (
            "int missing(void); int broken(void) { return missing(); }",
            "cannot be loaded",
        ),
    ],
)
def test_module_that_does_not_fit_is_not_used(
    tmp_path: Path, source: str, why: str
) -> None:
    (tmp_path / "module.c").write_text(source)
    library = tmp_path / "ngx_http_thalweg_module.so"
    subprocess.run(
        ["cc", "-shared", "-fPIC", tmp_path / "module.c", "-o", library], check=True
    )
    with nginx.started(tmp_path, cpath(tmp_path) + ECHO, MODE) as running:
        assert running.get("/").text == "A"
        assert running.get("/").text == "A"
    [line] = running.alerts()
    assert "[warn]" in line
    assert why in line
