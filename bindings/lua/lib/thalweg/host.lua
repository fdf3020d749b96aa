--- Host imports: functions that the service calls on its host. They are fields of a table that the
-- program passes to `open`. A function runs in a light thread of a timer, and may wait. It returns the
-- result; or nil and the payload of the service's error type. An error that it raises ends the
-- service's call as `guest_panicked`.
local abi = require "thalweg.abi"
local errors = require "thalweg.errors"
local ffi = require "ffi"
local message = require "thalweg.message"
local writers = require "thalweg.writer"

local Host = {}
Host.__index = Host

local M = {}

--- Serves the host calls of a client with the functions in `functions`.
function M.open(port, client, imports, functions)
  local self = setmetatable({ port = port, imports = imports, functions = functions }, Host)
  self.entry = { serve = function(completion) self:serve(completion) end }
  port:enter(self.entry)
  if port.table.client_set_host(client._cell.number, port.number, self.entry.token, port.error) ~= abi.OK then
    self:close()
    return nil, port:failure()
  end
  return self
end

function Host:close()
  if self.entry then
    self.port:leave(self.entry)
    self.entry = nil
  end
end

--- Serves a host call.
function Host:serve(completion)
  local port = self.port
  local call, imported = completion.call, self.imports[completion.code]
  local mine = message.new(port)
  mine.method, mine.completion = imported, completion
  local values
  local ok, why = pcall(function()
    values = mine:read(completion.data, completion.data_size, imported.layouts[1], imported.arguments)
  end)
  port.table.release(completion)
  if not ok then return self:panic(call, imported, why) end
  port.host_threads:run(port.direct == nil, function()
    local results = { pcall(self.functions[imported.field], unpack(values, 1, imported.arity)) }
    if results[1] then
      results = { pcall(self.answer, self, call, imported, results[2], results[3]) }
    end
    if not results[1] then
      self:panic(call, imported, results[2])
    end
  end)
end

--- Answers a host call. An answer that comes too late is dropped, because no call waits for it.
function Host:answer(call, imported, value, failure)
  local code, shape, layout = abi.OK, imported.ok, imported.layouts[2]
  if failure ~= nil then
    code, shape, layout, value = abi.ERROR, imported.error, imported.layouts[3], failure
    if not shape then
      error(errors.argument("it has returned an error, but its type has none"), 0)
    end
  end
  local writer = writers.new()
  local root = writer:begin("its result", layout, 0, shape.size)
  if shape.put then
    shape.put(writer, root, value)
  end
  writer:finish()
  local status = self.port.table.host_call_answer(call, code, writer.data, writer.size, self.port.error)
  if status ~= abi.OK and status ~= abi.STALE then error(self.port:failure(), 0) end
end

function Host:panic(call, imported, why)
  local text = "the host's " .. imported.name .. ": " .. tostring(why)
  self.port.table.host_call_answer(call, abi.GUEST_PANICKED, ffi.cast("const uint8_t *", text), #text, nil)
end

return M
