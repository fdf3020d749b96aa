--- Streams and futures that the service writes.
--
-- 1. A stream has one reader at a time and one open batch, whose records are read in place. The next
--    batch releases it.
-- 2. A reader that always finds records lets other events of the worker run after FAIR records.
local abi = require "thalweg.abi"
local abort = require "thalweg.abort"
local errors = require "thalweg.errors"
local ffi = require "ffi"
local message = require "thalweg.message"
local parkers = require "thalweg.parker"
local phase = require "thalweg.phase"

local band = require("bit").band

--- Records of a batch, as in the packages of other languages.
local BATCH = 256
local FAIR = 1024

local STATS = abi.counters_of("tw_stats")
local GAPS = { "conflated", "dropped-newest", "dropped-oldest", "batch-open", "service" }

---@class thalweg.Stream
local Stream = {}
Stream.__index = Stream

--- A stream is an iterator: `for record in stream do .. end`.
function Stream:__call()
  return (self:next())
end

local M = {}

function M.new(port, number, client, method, element)
  local self = setmetatable({
    port = port,
    client = client,
    method = method,
    element = element,
    cell = port:cell(number),
    message = message.new(port),
    batch = ffi.new("tw_batch"),
    --- The next record of the batch, and their number.
    index = 0,
    count = 0,
    taken = 0,
    parker = parkers.new(),
    is_parked = false,
    is_reading = false,
    --- Records that are missing so far, and why the last ones are.
    lost = 0,
    gap_reason = nil,
    --- The last record is one of the control lane.
    control = false,
    --- The error that the stream ended with; nil: it has not ended, or is complete.
    err = nil,
  }, Stream)
  self.message.method = method
  abort.watch(self)
  return self
end

function Stream:is_closed()
  return self.cell.number == 0
end

--- Closes the stream. The service stops writing. Closing twice has no effect.
function Stream:close()
  self.index, self.count = 0, 0
  self.port:close_cell(self.cell)
  if self.is_parked then
    parkers.post(self.parker)
  end
end

Stream.cancel = Stream.close

--- The next record. At the end nil, and an error unless the stream is complete.
function Stream:next()
  if self.index >= self.count then
    local ok, failure = self:read()
    if not ok then return nil, failure end
  end
  local batch, element = self.batch, self.element
  local at = batch.slots - batch.base + self.index * batch.stride
  self.index = self.index + 1
  return element.get(self.message, tonumber(at))
end

--- The number of records that can be read without waiting.
function Stream:buffered()
  return self.count - self.index
end

--- Waits for the next batch. Returns nil at the end, and an error unless the stream is complete.
function Stream:read()
  if self.is_reading then
    return nil, errors.argument(self.method.name .. ": another light thread reads this stream")
  end
  self.is_reading = true
  local ok, failure = self:acquire()
  self.is_reading = false
  return ok, failure
end

function Stream:acquire()
  local port, batch, cell = self.port, self.batch, self.cell
  local table = port.table
  if self.count > 0 then
    table.stream_release(cell.number, self.count, nil)
    self.count, self.index = 0, 0
  end
  if self.taken >= FAIR and phase.can_wait() then
    self.taken = 0
    self.is_parked = true
    parkers.turn(self.parker)
    self.is_parked = false
  end
  while cell.number ~= 0 do
    local code = table.stream_acquire(cell.number, BATCH, 0, batch, port.error)
    local is_end = band(batch.flags, abi.BATCH_END) ~= 0
    if batch.lost_before > 0 and (code == abi.OK or is_end) then
      self.lost = self.lost + tonumber(batch.lost_before)
      self.gap_reason = GAPS[batch.gap_reason] or "unknown"
    end
    if code == abi.OK then
      return self:open_batch()
    elseif code ~= abi.WOULD_PARK or is_end then
      return self:finish(code)
    end
    local ok, failure = self:wait()
    if not ok then return nil, failure end
  end
  return nil, self.err
end

function Stream:open_batch()
  local batch = self.batch
  if batch.stride < self.element.size then
    self:close()
    self.err = errors.new("version", self.method.name .. ": the records are shorter than expected")
    return nil, self.err
  end
  self.control = band(batch.flags, abi.BATCH_CONTROL) ~= 0
  self.message:open_records(batch)
  self.count = batch.count
  self.taken = self.taken + batch.count
  return true
end

--- Waits until the stream is ready or closed.
function Stream:wait()
  if not phase.can_wait() then return nil, phase.refused(self.method.name) end
  local port = self.port
  local entry = { parker = self.parker }
  port:enter(entry)
  local code = port.table.stream_arm(self.cell.number, port.number, entry.token, port.ready, port.error)
  if code ~= abi.OK or port.ready[0] ~= 0 then
    port:leave(entry)
    return code == abi.OK or nil, code ~= abi.OK and port:failure() or nil
  end
  self.is_parked = true
  local ok, failure = parkers.park(self.parker)
  self.is_parked = false
  port:leave(entry)
  self.taken = 0
  if ok and port.broken then return nil, port.broken end
  return ok, failure
end

--- The stream has ended with this code.
function Stream:finish(code)
  local port, method = self.port, self.method
  if code ~= abi.CLOSED then
    self.err = port:failure()
    local shape = method.error
    if code == abi.ERROR and shape then
      local data, size = ffi.new("const uint8_t *[1]"), ffi.new("uint64_t[1]")
      port.table.stream_error(self.cell.number, data, size, nil)
      local ok, payload = pcall(self.message.read, self.message, data[0], size[0], method.layouts[3], shape)
      self.err = ok and errors.service(payload, false) or errors.wrap(payload, method.name)
    end
  end
  self:close()
  return nil, self.err
end

--- Another reader, for another light thread. It begins with the next record that is written.
function Stream:tee()
  local port = self.port
  local number = ffi.new("tw_handle[1]")
  if port.table.stream_tee(self.cell.number, number, port.error) ~= abi.OK then
    return nil, port:failure()
  end
  return M.new(port, number[0], self.client, self.method, self.element)
end

--- The counters of all streams of this method and client: the fields of tw_stats as numbers, and
-- `lost`, a table by reason.
function Stream:stats()
  local port = self.port
  local stats = ffi.new("tw_stats")
  if port.table.stream_stats(self.cell.number, 0, stats, ffi.sizeof(stats), port.error) ~= abi.OK then
    return nil, port:failure()
  end
  local result = { lost = { unknown = tonumber(stats.lost[0] + stats.lost[6] + stats.lost[7]) } }
  for reason, name in ipairs(GAPS) do
    result.lost[name] = tonumber(stats.lost[reason])
  end
  for _, name in ipairs(STATS) do
    result[name] = tonumber(stats[name])
  end
  return result
end

local Future = {}
Future.__index = Future

--- Waits for the value. Returns nil and an error if there is none.
function Future:get()
  if self.stream then
    local stream = self.stream
    local value, failure = stream:next()
    if value == nil and not failure then
      failure = stream.err or errors.new("guest_lost", "the service dropped the future without a value")
    end
    stream:close()
    self.value, self.err, self.stream = value, failure, nil
  end
  if self.err then return nil, self.err end
  return self.value
end

function Future:close()
  if self.stream then
    self.stream:close()
  end
end

message.make_stream = M.new
function message.make_future(...)
  return setmetatable({ stream = M.new(...) }, Future)
end

return M
