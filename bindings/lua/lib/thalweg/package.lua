--- What a generated package expects of a library: its functions with the hashes of their messages.
local abi = require "thalweg.abi"
local bit = require "bit"
local errors = require "thalweg.errors"
local ffi = require "ffi"
local handle = require "thalweg.handle"
local hosts = require "thalweg.host"
local library = require "thalweg.library"
local phase = require "thalweg.phase"
local ports = require "thalweg.port"
local wakers = require "thalweg.waker"

--- How to read a message without a value.
local NOTHING = { size = 0, get = function() return true end }

--- The longest spin in nanoseconds: see "Waiting a moment" in docs/internals/lua.md.
local SPIN = 200000

local Package = {}
Package.__index = Package

local M = {}

--- `layout` is the hash of all methods and host imports.
function M.new(name, version, layout)
  return setmetatable({
    name = name,
    version = version,
    layout = layout,
    client_class = handle.class(name),
    methods = {},
    imports = {},
    method_count = 0,
    import_count = 0,
    --- The ports of this worker, by the path of the library.
    ports = {},
  }, Package)
end

--- The low halves of hashes, which are in the headers of messages.
local function layouts(hashes)
  local low = {}
  for i = 1, 4 do
    low[i] = tonumber(hashes[i] % 0x100000000ULL)
  end
  return low
end

--- Declares a method: `name` in WIT; `hashes` and `types` of its parameters, result, error and
-- element; `params`, the size of the record of its parameters, and `handles`, the number of handles in
-- it; `put`, which writes them; `ok` and `error`: how to read the messages.
function Package:method(method)
  method.number = self.method_count
  method.layouts = layouts(method.hashes)
  method.params = method.params or 0
  method.handles = method.handles or 0
  method.ok = method.ok or NOTHING
  self.methods[self.method_count] = method
  self.method_count = self.method_count + 1
  return method
end

--- Declares a host import: `field` is the host's function; `arguments` reads `arity` arguments.
function Package:import(imported)
  imported.layouts = layouts(imported.hashes)
  imported.ok = imported.ok or { size = 0 }
  self.imports[self.import_count] = imported
  self.import_count = self.import_count + 1
end

--- The methods, and then the host imports, as structs of the C ABI.
function Package:describe()
  local methods = ffi.new("tw_method[?]", self.method_count + self.import_count + 1)
  local anchors = { methods }
  local function add(i, method)
    local types = table.concat(method.types, "\n")
    anchors[#anchors + 1] = types
    methods[i].name = method.name
    methods[i].params, methods[i].ok, methods[i].error, methods[i].element = unpack(method.hashes)
    methods[i].description = ffi.cast("const uint8_t *", types)
    methods[i].description_size = #types
  end
  for i = 0, self.method_count - 1 do
    add(i, self.methods[i])
  end
  for i = 0, self.import_count - 1 do
    add(self.method_count + i, self.imports[i])
  end
  self.c_methods, self.anchors = methods, anchors
end

--- Opens the port of the library at `path` in this worker.
function Package:port(path)
  local port = self.ports[path]
  if port then return port end
  if not self.c_methods then
    self:describe()
  end
  local table, failure = library.open(path, self)
  if not table then return nil, failure end
  local waker = wakers.choose()
  port, failure = ports.open(table, path, waker, self.capacity)
  if not port then return nil, failure end
  port:receive_log()
  -- Methods that run on the caller's thread, by their number: always, and if their service is idle.
  port.inline = {}
  port.brief = {}
  local flags = {}
  for i = 0, table.method_count - 1 do
    flags[ffi.string(table.methods[i].name)] = table.methods[i].flags
  end
  for i = 0, self.method_count - 1 do
    local of = flags[self.methods[i].name] or 0
    port.inline[i] = bit.band(of, abi.METHOD_INLINE) ~= 0
    port.brief[i] = bit.band(of, abi.METHOD_BRIEF) ~= 0
  end
  self.ports[path] = port
  return port
end

--- Opens a client of the library at `path`. `options.host` has the functions that the service calls.
-- Returns nil and an error if the library cannot be loaded, or is incompatible.
function Package:open(path, options)
  local is_forked, why = phase.check_forked(self.name)
  if not is_forked then return nil, why end
  local host = options and options.host
  if host ~= nil and type(host) ~= "table" then
    return nil, errors.argument(self.name .. ": host: expected a table with the host's functions")
  end
  local port, failure = self:port(path)
  if not port then return nil, failure end
  if options and options.spin then
    port.moment = SPIN
  end
  local number = ffi.new("tw_handle[1]")
  if port.table.client_open(number, port.error) ~= abi.OK then return nil, port:failure() end
  local client = handle.new(self.client_class, port, number[0])
  if port.table.layout ~= self.layout and port.table.client_set_layouts(number[0], self.c_methods,
      self.method_count, self.c_methods + self.method_count, self.import_count, port.error) ~= abi.OK then
    failure = port:failure()
  elseif host then
    client._host, failure = hosts.open(port, client, self.imports, host)
  end
  if failure then
    client:close()
    return nil, failure
  end
  return client
end

return M
