--- Opens libraries, and checks that they fit the package: the rules of thalweg_open.h.
local abi = require "thalweg.abi"
local errors = require "thalweg.errors"
local ffi = require "ffi"

local bit = require "bit"

local C = ffi.C
--- Found before they are used: LuaJIT finds a function with dlsym, which clears the error of dlopen.
local dlopen, dlsym, dlclose, dlerror = C.thalweg_dlopen, C.thalweg_dlsym, C.thalweg_dlclose, C.thalweg_dlerror
local string_of = ffi.string

local M = { RTLD_LAZY = 1, RTLD_NOW = 2, RTLD_NOLOAD = 4, RTLD_GLOBAL = 256, symbol = dlsym }

--- Whether two versions may be compatible: they are equal, or have the same major number, or for 0.x
-- the same minor number.
function M.is_compatible(ours, theirs)
  if ours == theirs then return true end
  local major, minor = ours:match("^(%d+)%.(%d+)%.%d+$")
  local their_major, their_minor = theirs:match("^(%d+)%.(%d+)%.%d+$")
  return major ~= nil and major == their_major
    and (major ~= "0" or (minor == their_minor and minor ~= "0"))
end

local function text(pointer, otherwise)
  return pointer ~= nil and string_of(pointer) or otherwise
end

--- Why a table does not fit the package, or nil.
local function mismatch(table, expected)
  local ours = expected.name .. "@" .. expected.version
  if table == nil then
    return "built for " .. ours .. " (abi " .. abi.ABI .. "), but the library offers no table"
  end
  -- These fields are at the same place in every table.
  local name = text(table.package, "(no name)")
  local version = text(table.version, "(no version)")
  local theirs = name .. "@" .. version .. ", Thalweg " .. text(table.core, "(unknown)")
  if table.abi ~= abi.ABI then
    return "built for abi " .. abi.ABI .. " (" .. ours .. "), but the library has abi " .. table.abi
      .. " (" .. theirs .. ")"
  end
  if table.size < ffi.sizeof("tw_table") then
    return "built for a table of " .. ffi.sizeof("tw_table") .. " bytes (" .. ours
      .. "), but the library's has " .. table.size .. " (" .. theirs .. ")"
  end
  if name ~= expected.name or not M.is_compatible(expected.version, version) then
    return "built for " .. ours .. ", but the library is " .. theirs
  end
  if table.layout == expected.layout then return nil end
  -- Methods may have other numbers, and types may have grown. The library decides.
  local failure = ffi.new("tw_error")
  if table.client_set_layouts ~= nil and table.client_set_layouts(0, expected.c_methods,
      expected.method_count, expected.c_methods + expected.method_count, expected.import_count, failure) == abi.OK then
    return nil
  end
  return string.format("built for %s with layout %s, but the library's %s has layout %s; first difference: %s",
    ours, bit.tohex(expected.layout), theirs, bit.tohex(table.layout), string_of(failure.message))
end

--- Loads the library at `path`, which dlopen searches for if it has no slash. Returns its handle, or nil
-- and the reason. It stays loaded, also when the worker exits, unless it is closed.
function M.load(path, flags)
  local loaded = dlopen(path, flags)
  if loaded == nil then return nil, text(dlerror(), path) end
  return loaded
end

--- The libthalweg.so next to this file, or nil.
local function packaged_core()
  local folder = debug.getinfo(1, "S").source:match("^@(.*/)")
  local path = folder and folder .. "libthalweg.so"
  local file = path and io.open(path)
  if not file then return nil end
  file:close()
  return path
end

--- Loads libthalweg.so: the one of THALWEG_LIBRARY, or one that the worker has loaded already, or the one
-- in this package, or one that dlopen finds.
local function load_core()
  local path = os.getenv("THALWEG_LIBRARY")
  if not path or path == "" then
    local loaded = M.load("libthalweg.so", M.RTLD_NOW + M.RTLD_NOLOAD)
    if loaded then return loaded end
    path = packaged_core() or "libthalweg.so"
  end
  return M.load(path, M.RTLD_NOW)
end

--- Opens a guest, a service in another language than Rust, by its address.
local function open_address(address, expected)
  local core, reason = load_core()
  local symbol = core and dlsym(core, "tw_address_open")
  if symbol == nil then
    return nil, errors.argument("guests are opened by libthalweg.so, which cannot be used: "
      .. (reason or "it has no tw_address_open"))
  end
  local table, failure = ffi.new("const tw_table *[1]"), ffi.new("tw_error")
  local code = ffi.cast("uint32_t (*)(uint32_t, const char *, const tw_table **, tw_error *)", symbol)(
    abi.ABI, address, table, failure)
  if code ~= abi.OK then return nil, errors.from(failure) end
  local why = mismatch(table[0], expected)
  if why then
    ffi.cast("uint32_t (*)(const tw_table *, tw_error *)", dlsym(core, "tw_address_close"))(table[0], nil)
    return nil, errors.new("version", why)
  end
  return table[0]
end

--- Loads the library of a service, and checks that it fits the package. Or opens a guest by its
-- address, `thread:PATH`. Returns its table, or nil and an error. A library stays loaded, because its
-- threads run its code.
function M.open(path, expected)
  local ours = expected.name .. "@" .. expected.version
  if type(path) ~= "string" or path == "" or path:find("\0", 1, true) then
    return nil, errors.argument(expected.name .. ": path: expected the path of a library")
  end
  if path:match("^thread:") or path:match("^process:") or path:match("^remote:") then
    return open_address(path, expected)
  end
  local loaded, reason = M.load(path, M.RTLD_NOW)
  if not loaded then
    return nil, errors.argument("cannot load the library for " .. ours .. ": " .. reason)
  end
  local symbol = dlsym(loaded, "tw_library")
  if symbol == nil then
    dlclose(loaded)
    return nil, errors.argument("built for " .. ours
      .. ", but this is no Thalweg library, it has no tw_library: " .. path)
  end
  local table = ffi.cast("tw_library_function", symbol)(abi.ABI)
  local why = mismatch(table, expected)
  if why then
    dlclose(loaded) -- nothing in a refused library was started
    return nil, errors.new("version", why)
  end
  return table
end

return M
