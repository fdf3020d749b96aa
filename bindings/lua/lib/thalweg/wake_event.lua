--- Mode B: the module in `module/` lets nginx watch the eventfd of the port, and posts the semaphore of
-- the dispatcher.
local errors = require "thalweg.errors"
local ffi = require "ffi"
local parkers = require "thalweg.parker"

ffi.cdef [[
typedef struct thalweg_wake thalweg_wake;

uint32_t thalweg_nginx_version(void);
thalweg_wake *thalweg_wake_open(int fd, int (*post)(void *semaphore, int count), void *semaphore);
int thalweg_wake_is_closed(const thalweg_wake *wake);
void thalweg_wake_close(thalweg_wake *wake);
int thalweg_eventfd_write(int fd, uint64_t value) __asm__("eventfd_write");
]]

local Waker = {}
Waker.__index = Waker

local M = { mode = "B" }

--- Whether a library has the functions of the module.
local function has_functions(library)
  return pcall(function() return library.thalweg_nginx_version end)
end

--- Finds the module: nginx has loaded it, or it is in `lua_package_cpath`. Returns nil if there is
-- none, and a text if it does not fit.
function M.find()
  local library = ffi.C
  if not has_functions(library) then
    local path = package.searchpath("ngx_http_thalweg_module", package.cpath)
    if not path then return nil end
    local ok, loaded = pcall(ffi.load, path)
    if not ok or not has_functions(loaded) then
      return nil, "the module " .. path .. " cannot be loaded: " .. tostring(loaded)
    end
    library = loaded
  end
  local version = library.thalweg_nginx_version()
  if version ~= ngx.config.nginx_version then
    return nil, "the module was compiled for nginx " .. version .. ", and this is " .. ngx.config.nginx_version
  end
  M.module = library
  return true
end

--- Watches the eventfd of a port.
function M.new(port)
  local fd = ffi.new("int[1]")
  if port.table.port_fd(port.number, fd, port.error) ~= 0 then
    return nil, errors.from(port.error)
  end
  local parker = parkers.new()
  local post = ffi.cast("int (*)(void *, int)", ffi.C.ngx_http_lua_ffi_sema_post)
  local wake = M.module.thalweg_wake_open(fd[0], post, parker.semaphore.sem)
  if wake == nil then return nil, "nginx cannot watch the port: see worker_connections" end
  return setmetatable({ parker = parker, watch = wake, fd = fd[0] }, Waker)
end

--- Waits until the eventfd was readable, or for `wake`.
function Waker:wait()
  assert(parkers.park(self.parker))
  if M.module.thalweg_wake_is_closed(self.watch) ~= 0 then error("nginx has closed the eventfd", 0) end
end

--- When a worker exits, nginx does not look at semaphores that are posted then before the next event.
function Waker:wake()
  ffi.C.thalweg_eventfd_write(self.fd, 1)
end

function Waker:close()
  M.module.thalweg_wake_close(self.watch)
end

return M
