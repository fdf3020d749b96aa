--- Mode A: the port wakes the dispatcher through a Unix socket. nginx watches the end that is a
-- cosocket, and the port writes a byte into the other one. nginx can only connect a cosocket, so
-- that both ends are made by a listener, in a folder that only this user can enter.
local errors = require "thalweg.errors"
local ffi = require "ffi"

local C = ffi.C

ffi.cdef [[
typedef struct thalweg_sockaddr_un { uint16_t family; char path[108]; } thalweg_sockaddr_un;
typedef struct thalweg_ucred { int pid, uid, gid; } thalweg_ucred;

char *thalweg_mkdtemp(char *template) __asm__("mkdtemp");
int thalweg_rmdir(const char *path) __asm__("rmdir");
int thalweg_unlink(const char *path) __asm__("unlink");
int thalweg_socket(int domain, int type, int protocol) __asm__("socket");
int thalweg_bind(int fd, const void *address, uint32_t size) __asm__("bind");
int thalweg_listen(int fd, int backlog) __asm__("listen");
int thalweg_accept4(int fd, void *address, uint32_t *size, int flags) __asm__("accept4");
int thalweg_getsockopt(int fd, int level, int name, void *value, uint32_t *size)
  __asm__("getsockopt");
long thalweg_write(int fd, const void *bytes, size_t size) __asm__("write");
int thalweg_close(int fd) __asm__("close");
]]

local AF_UNIX = 1
local SOCK_STREAM_CLOEXEC_NONBLOCK = 1 + 524288 + 2048
local SOL_SOCKET, SO_PEERCRED = 1, 17
--- A read ends after this time, in milliseconds, and begins again.
local LONG = 1000000000

local Waker = {}
Waker.__index = Waker

local M = { mode = "A" }

local function failed(what)
  error("cannot make a wake-up socket: " .. what .. ": errno " .. ffi.errno(), 0)
end

--- Both ends of a connection: a cosocket and a file descriptor. The listener is closed.
local function connect(path, listener)
  local address = ffi.new("thalweg_sockaddr_un", AF_UNIX, path)
  if C.thalweg_bind(listener, address, ffi.sizeof(address)) ~= 0 then failed("bind " .. path) end
  if C.thalweg_listen(listener, 1) ~= 0 then failed("listen") end
  local socket = ngx.socket.tcp()
  socket:settimeouts(LONG, LONG, LONG)
  local ok, why = socket:connect("unix:" .. path)
  if not ok then failed("connect: " .. why) end
  local fd = C.thalweg_accept4(listener, nil, nil, SOCK_STREAM_CLOEXEC_NONBLOCK - 1)
  if fd < 0 then failed("accept") end
  local peer = ffi.new("thalweg_ucred")
  local size = ffi.new("uint32_t[1]", ffi.sizeof(peer))
  C.thalweg_getsockopt(fd, SOL_SOCKET, SO_PEERCRED, peer, size)
  if peer.pid ~= ngx.worker.pid() then
    C.thalweg_close(fd)
    failed("another process has connected")
  end
  return socket, fd
end

--- Creates the connection, and lets the port write to it.
function M.new(port)
  local template = (os.getenv("TMPDIR") or "/tmp") .. "/thalweg-XXXXXX"
  local folder = ffi.new("char[?]", #template + 1, template)
  if C.thalweg_mkdtemp(folder) == nil then failed("mkdtemp " .. template) end
  local path = ffi.string(folder) .. "/wake"
  local listener = C.thalweg_socket(AF_UNIX, SOCK_STREAM_CLOEXEC_NONBLOCK, 0)
  local ok, socket, fd = pcall(connect, path, listener)
  if listener >= 0 then C.thalweg_close(listener) end
  C.thalweg_unlink(path)
  C.thalweg_rmdir(folder)
  if not ok then error(socket, 0) end
  if port.table.port_wake(port.number, fd, port.error) ~= 0 then
    C.thalweg_close(fd)
    return nil, errors.from(port.error)
  end
  return setmetatable({ socket = socket, fd = fd, port = port }, Waker)
end

--- Waits until the port, or `wake`, has written.
function Waker:wait()
  local _, why = self.socket:receiveany(64)
  if why and why ~= "timeout" then error("the wake-up socket: " .. why, 0) end
end

function Waker:wake()
  C.thalweg_write(self.fd, "x", 1)
end

function Waker:close()
  self.port.table.port_wake(self.port.number, -1, nil)
  C.thalweg_close(self.fd)
  self.socket:close()
end

return M
