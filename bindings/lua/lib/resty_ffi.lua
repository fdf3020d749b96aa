--- `ngx.load_ffi`, for libraries that were written for lua-resty-ffi: docs/migrating/lua-resty-ffi.md.
--
-- A *runtime* is a client of libthalweg_resty_ffi.so, whose calls the threads of the library serve. Its
-- fields with other names than `__unload` are all the same function, which makes a call.
local abi = require "thalweg.abi"
local call = require "thalweg.call"
local errors = require "thalweg.errors"
local ffi = require "ffi"
local handle = require "thalweg.handle"
local library = require "thalweg.library"
local packages = require "thalweg.package"
local phase = require "thalweg.phase"

ffi.cdef [[
uint32_t thalweg_resty_ffi_open(uint32_t max_queue, tw_handle *client, void **tq, tw_error *error);
void thalweg_resty_ffi_finish(tw_handle client);
]]

local NAME = "libthalweg_resty_ffi"
local MAX_QUEUE = 65536

local package_of_shim = packages.new("thalweg:resty-ffi", "0.1.0", 0x2c9a1d692cca5565ULL)
--- A runtime has its own limit, `max_queue`.
package_of_shim.capacity = 65536

local function check_answer(m, at)
  if m:check_tag(at, 1, 2) == 1 then
    m:check_text(at + 4)
  end
end

local function get_answer(m, at)
  if m:u8(at) == 1 then return m:string(at + 4) end
end

local CALL = package_of_shim:method {
  name = "resty-ffi.call",
  hashes = { 0xe1ece7a410c142b7ULL, 0x3ab2a65f512546f9ULL, 0x3c556a9c325db52bULL, 0x0ULL },
  types = { "record{request:option<list<u8>>}", "option<list<u8>>", "tuple<s32,option<list<u8>>>", "" },
  params = 12,
  put = function(w, at, request)
    if request == nil then return end
    w.data[at] = 1
    w:string(at + 4, request, "request")
  end,
  ok = { size = 12, check = check_answer, get = get_answer },
  error = {
    size = 16,
    check = function(m, at) check_answer(m, at + 4) end,
    get = function(m, at) return { code = m:s32(at), text = get_answer(m, at + 4) } end,
  },
}

--- The runtimes of this worker by library and configuration, and the functions `libffi_init` by library.
-- A library stays loaded, because its threads run its code, also for a moment after an unload.
local runtimes, inits = {}, {}
--- libthalweg_resty_ffi.so, and its port.
local shim, port

--- Loads libthalweg_resty_ffi.so, so that libraries find its functions.
local function load_shim()
  local path = package.searchpath(NAME, package.cpath) or NAME .. ".so"
  local ok, loaded = pcall(ffi.load, path, true)
  if not ok then return nil, errors.argument("cannot load " .. path .. ": " .. loaded) end
  local failure
  port, failure = package_of_shim:port(path)
  if not port then return nil, failure end
  shim = loaded
  return true
end

--- The file of a library: `demo` is the short name of `libdemo.so`.
local function file_of(lib)
  if lib:find("/", 1, true) then return lib end
  local file = lib:find(".", 1, true) and lib or lib .. ".so"
  return file:find("^lib") and file or "lib" .. file
end

--- Loads a library. Returns its function `libffi_init`.
local function load_library(lib, is_global)
  if not inits[lib] then
    local flags = library.RTLD_LAZY + (is_global and library.RTLD_GLOBAL or 0)
    local loaded, why = library.load(file_of(lib), flags)
    if not loaded then return nil, errors.argument("cannot load the library " .. lib .. ": " .. why) end
    local init = library.symbol(loaded, "libffi_init")
    if init == nil then return nil, errors.argument("the library " .. lib .. " has no libffi_init") end
    inits[lib] = ffi.cast("int (*)(char *cfg, void *tq)", init)
  end
  return inits[lib]
end

--- The object of a runtime. `client` is its client, and `key` its place in `runtimes`.
local function new_runtime(client, key, options)
  local function post(_, request, own_options)
    if not client then
      local failure = errors.new("closed", "the runtime was unloaded")
      return false, tostring(failure), failure
    end
    local answer, failure = call(client, CALL, own_options or options, request)
    if not failure then
      return true, answer
    elseif failure.code == "error" then
      return false, failure.payload.code, failure.payload.text
    end
    return false, tostring(failure), failure
  end

  local function unload()
    if client then
      shim.thalweg_resty_ffi_finish(client._cell.number)
      -- It is closed as garbage, when its last call has ended.
      client, runtimes[key] = nil, nil
    end
    return true
  end

  return setmetatable({ __unload = unload }, { __index = function() return post end, __call = post })
end

--- Opens a client, and lets the library start its threads. Returns nil, and an error or the library's
-- code.
local function start(init, key, cfg, opts)
  local number, tq = ffi.new("tw_handle[1]"), ffi.new("void *[1]")
  if shim.thalweg_resty_ffi_open(opts.max_queue or MAX_QUEUE, number, tq, port.error) ~= abi.OK then
    return nil, port:failure()
  end
  local client = handle.new(package_of_shim.client_class, port, number[0])
  -- A copy, because the library may write to it.
  local rc = init(cfg and ffi.new("char[?]", #cfg + 1, cfg), tq[0])
  if rc ~= 0 then
    client:close()
    return nil, rc
  end
  runtimes[key] = new_runtime(client, key, { timeout = opts.timeout })
  return runtimes[key]
end

local function is_text(value)
  return type(value) == "string" and not value:find("\0", 1, true)
end

--- The first wrong argument of `ngx.load_ffi`.
local function wrong_argument(lib, cfg, opts)
  local function is_number(value, least, most)
    return value == nil or type(value) == "number" and value >= least and value <= most
  end
  if not is_text(lib) or lib == "" then
    return "lib: expected the name or the path of a library"
  elseif cfg ~= nil and not is_text(cfg) then
    return "cfg: expected a string without a NUL, or nil"
  elseif type(opts) ~= "table" then
    return "opts: expected a table"
  elseif not is_number(opts.max_queue, 1, 2 ^ 31 - 1) then
    return "max_queue: expected a number from 1 to 2^31 - 1"
  elseif not is_number(opts.timeout, 0, math.huge) then
    return "timeout: expected seconds, 0 or more"
  end
end

--- Loads a library with a configuration, or returns its runtime of an earlier call. Options are
-- `max_queue`, `is_global`, and `timeout` for each call in seconds.
local function load_ffi(lib, cfg, opts)
  opts = opts or {}
  local wrong = wrong_argument(lib, cfg, opts)
  if wrong then return nil, errors.argument("ngx.load_ffi: " .. wrong) end
  local key = lib .. "\0" .. (cfg and "&" .. cfg or "")
  if runtimes[key] then return runtimes[key] end
  local ok, failure = phase.check_forked("ngx.load_ffi")
  if ok and not shim then
    ok, failure = load_shim()
  end
  if not ok then return nil, failure end
  local init
  init, failure = load_library(lib, opts.is_global)
  if not init then return nil, failure end
  return start(init, key, cfg, opts)
end

ngx.load_ffi = load_ffi

return { load_ffi = load_ffi }
