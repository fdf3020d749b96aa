--- Streams and futures that are parameters: the caller sends their elements while it waits.
--
-- 1. Each one is created for one call. Its reader goes into the call's message, and belongs to the
--    service once the call was accepted. Otherwise both ends are closed.
-- 2. If a stream has no capacity, the caller sends the elements of the next one, and then waits until
--    one of them is ready, or the call has ended.
-- 3. An error of the program's function closes the stream without finishing it, and cancels the call.
local abi = require "thalweg.abi"
local errors = require "thalweg.errors"
local ffi = require "ffi"
local parkers = require "thalweg.parker"
local writers = require "thalweg.writer"

--- Elements that are sent before other events of the worker.
local FAIR = 256

--- For a parameter that is a future: it ends without a value.
local no_value = setmetatable({}, { __tostring = function() return "no_value" end })

local Sender = {}
Sender.__index = Sender

local M = { no_value = no_value }

--- A function that returns the elements of a table or of a function, and then nil.
local function iterator(values)
  if type(values) == "function" then return values end
  local index = 0
  return function()
    index = index + 1
    return values[index]
  end
end

--- A function that returns the value of a future once.
local function once(value)
  return function()
    local result = value
    if type(value) == "function" then
      result = value()
    end
    value = nil
    return result
  end
end

--- Creates the streams of the message that `writer` has completed. Returns nil and an error if the
-- core refuses one.
function M.open(port, client, method, writer)
  local senders = {}
  for i, parameter in ipairs(writer.upstreams) do
    local ends = ffi.new("tw_handle[2]")
    if port.table.stream_new(client._cell.number, method.number, parameter.parameter, ends, ends + 1,
        port.error) ~= abi.OK then
      local failure = port:failure()
      M.close(senders)
      return nil, failure
    end
    local place = method.name .. ": " .. (parameter.name or "a stream")
    senders[i] = setmetatable({
      port = port,
      cell = port:cell(ends[0]),
      reader = port:cell(ends[1]),
      element = parameter.element,
      next = (parameter.is_future and once or iterator)(parameter.values),
      is_future = parameter.is_future,
      place = place,
      writer = writers.new(),
      has_element = false,
      sent = 0,
      entry = {},
    }, Sender)
    senders[i].writer.port = port
    writer:set_handle(parameter.index, ends[1])
  end
  return senders
end

--- The call was accepted. Its caller waits with `parker`.
function M.begin(senders, parker)
  for _, sender in ipairs(senders) do
    sender.reader.number = 0
    sender.entry.parker = parker
  end
end

--- Sends what the streams have capacity for. Raises the errors of functions of the program.
function M.send(senders)
  for _, sender in ipairs(senders) do
    local ok, why = pcall(sender.run, sender)
    if not ok then
      sender:close()
      error(errors.wrap(why, sender.place), 0)
    end
  end
end

function M.close(senders)
  for _, sender in ipairs(senders) do
    sender:close()
  end
end

--- Closes both ends that belong to this side.
function Sender:close()
  self.port:close_cell(self.cell)
  self.port:close_cell(self.reader)
  if self.entry.token then
    self.port:leave(self.entry)
  end
end

--- Encodes the next element. False: there is none.
function Sender:take()
  local value = self.next()
  if value == nil or (self.is_future and value == no_value) then return false end
  local element, writer = self.element, self.writer
  local root = writer:begin(self.place, element.layout, 0, element.size)
  if element.put then
    element.put(writer, root, value)
  end
  writer:finish()
  self.has_element = true
  return true
end

--- Whether the stream is armed, and not ready yet.
function Sender:is_waiting()
  local entry = self.entry
  if entry.token and not entry.is_ready then return true end
  entry.token, entry.is_ready = nil, nil
  return false
end

function Sender:run()
  local port, cell = self.port, self.cell
  local table = port.table
  while cell.number ~= 0 and not self:is_waiting() do
    if not self.has_element and not self:take() then
      if not self.is_future then
        table.stream_finish(cell.number, nil)
      end
      return self:close()
    end
    local code = cell.number == 0 and abi.CLOSED
      or table.stream_send(cell.number, self.writer.data, self.writer.size, 0, port.error)
    if code == abi.OK then
      self.has_element = false
      self.sent = self.sent + 1
      if self.is_future then
        return self:close()
      elseif self.sent % FAIR == 0 then
        parkers.turn(self.entry.parker)
      end
    elseif code == abi.WOULD_PARK then
      port:enter(self.entry)
      if table.stream_arm(cell.number, port.number, self.entry.token, port.ready, nil) ~= abi.OK
          or port.ready[0] ~= 0 then
        port:leave(self.entry)
        self.entry.is_ready = true
      end
    elseif code == abi.ARGUMENT then
      error(port:failure(), 0)
    else
      return self:close() -- the service does not read on
    end
  end
end

return M
