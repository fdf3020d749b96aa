--- The port of a library in this worker: it submits calls, and wakes their callers.
--
-- 1. A worker has one port for each library. Everything here runs in the worker's event loop.
-- 2. Each wait has an *entry*: a call, a stream, or the host of a client. Its number, which the core
--    carries as a token, is its slot and a generation. A completion whose entry is gone is released.
-- 3. A caller waits on the semaphore of its *parker*. The dispatcher, a light thread of a timer,
--    reaps completions, copies each one into its entry and posts the semaphore.
-- 4. An entry leaves its slot when its last completion is delivered, and returns to the pool when
--    its caller has continued. If nginx has ended the caller, because its client has gone, the entry
--    becomes garbage: the finalizer of its completion releases it.
-- 5. The dispatcher is woken by `waker`: wake_socket.lua or wake_event.lua. It ends when the worker
--    exits and nobody waits. A later call starts it again.
-- 6. On one processor, the first completion of many calls wakes the worker before the service has run the
--    others. The dispatcher therefore yields the processor once if fewer calls have ended than were
--    submitted, and does not expect the others any longer if that was in vain.
local abi = require "thalweg.abi"
local errors = require "thalweg.errors"
local ffi = require "ffi"
local message = require "thalweg.message"
local parkers = require "thalweg.parker"
local threads = require "thalweg.threads"
local writer = require "thalweg.writer"

local copy, gc = ffi.copy, ffi.gc
local post, has_caller = parkers.post, parkers.has_caller
local COMPLETION_SIZE = ffi.sizeof("tw_completion")
local CALL, NOTICE, STREAM_READY = abi.CALL, abi.NOTICE, abi.STREAM_READY

--- Completions of one reap, and reaps before other events of the loop run.
local REAP = 32
local ROUNDS = 8
--- The number of slots fits the lower half of a token.
local SLOTS = 65536
--- Tokens are exact in a double.
local GENERATIONS = 2 ^ 36
--- The delay of a timer that nobody waits for, in seconds.
local LONG = 1000000

local Port = {}
Port.__index = Port

local M = {
  --- Slots of a port: the most outstanding calls of a worker. As in the packages of other languages.
  capacity = 16384,
  --- All ports of this worker.
  all = {},
}

--- Opens a port for a library. `waker` wakes its dispatcher. `capacity` is the number of its slots,
-- if it is not the usual one.
function M.open(table, path, waker, capacity)
  local self = setmetatable({
    table = table,
    path = path,
    waker = waker,
    error = ffi.new("tw_error"),
    number = 0,
    entries = {},
    free = {},
    slots = 0,
    generation = 0,
    --- Entries that wait for a completion, without hosts.
    waiting = 0,
    pool = {},
    submission = ffi.new("tw_submission"),
    count = ffi.new("uint32_t[1]"),
    ready = ffi.new("uint32_t[1]"),
    reaped = ffi.new("tw_completion[?]", REAP),
    inline_completion = ffi.new("tw_completion"),
    is_dispatching = false,
    --- Parkers of callers that let other events run.
    turns = {},
    host_threads = threads.new(),
    --- Calls that were submitted and may end soon: rule 6.
    expected = 0,
    --- Numbers for `metrics`.
    calls = 0,
    wakes = 0,
  }, Port)
  self.writer = writer.new()
  self.writer.port = self
  self.message = message.new(self)
  local number = ffi.new("tw_handle[1]")
  if table.port_open(capacity or M.capacity, number, self.error) ~= abi.OK then
    return nil, errors.from(self.error)
  end
  self.number = number[0]
  self.finalize = function(cell) self:close_handle(cell.number) end
  self:dispatch()
  M.all[#M.all + 1] = self
  return self
end

--- Closes a stream, resource or client.
function Port:close_handle(number)
  local table = self.table
  if number ~= 0 and table.stream_close(number, nil) == abi.ARGUMENT
      and table.resource_drop(number, nil) == abi.ARGUMENT then
    table.client_close(number, nil)
  end
end

--- A cell for a handle, which closes it when it is garbage.
function Port:cell(number)
  return gc(ffi.new("thalweg_handle", number), self.finalize)
end

--- Closes the handle in a cell. A second call has no effect.
function Port:close_cell(cell)
  local number = cell.number
  if number ~= 0 then
    cell.number = 0
    gc(cell, nil)
    self:close_handle(number)
  end
end

--- The last error of a function of the table.
function Port:failure()
  return errors.from(self.error)
end

-- Entries

--- Gives an entry a slot and a token.
function Port:enter(entry)
  local free = self.free
  local count = #free
  local slot
  if count > 0 then
    slot = free[count]
    free[count] = nil
  else
    slot = self.slots
    self.slots = slot + 1
  end
  self.generation = (self.generation + 1) % GENERATIONS
  entry.token = self.generation * SLOTS + slot
  self.entries[slot] = entry
  self.waiting = self.waiting + 1
  if not self.is_dispatching then
    self:dispatch()
  end
end

--- Removes an entry from its slot.
function Port:leave(entry)
  local slot = entry.token % SLOTS
  if self.entries[slot] == entry then
    self.entries[slot] = nil
    self.free[#self.free + 1] = slot
    self.waiting = self.waiting - 1
  end
end

--- The entry of a call.
local Call = {}
Call.__index = Call

--- Requests cancellation. The call ends with whichever outcome came first.
function Call:cancel()
  self.port.table.cancel(self.call, nil)
end

--- An entry for a call, with a slot.
function Port:enter_call()
  local pool = self.pool
  local count = #pool
  local entry
  if count > 0 then
    entry = pool[count]
    pool[count] = nil
  else
    entry = setmetatable({
      port = self,
      parker = parkers.new(),
      completion = gc(ffi.new("tw_completion"), self.table.release),
      is_done = false,
      elapsed = nil,
      call = nil,
      token = 0,
    }, Call)
  end
  self:enter(entry)
  return entry
end

--- Returns the entry of a call to the pool. Its completion was released.
function Port:recycle(entry)
  entry.is_done = false
  entry.elapsed = nil
  self.pool[#self.pool + 1] = entry
end

-- Submitting

--- Submits the message of `writer` as a call. Returns the core's handle of the call, or nil and an
-- error.
function Port:submit(entry, client, method, flags, deadline, from)
  local submission = self.submission
  submission.token = entry.token
  submission.client = client
  submission.method = method
  submission.flags = flags
  submission.args = from.data
  submission.args_size = from.size
  submission.deadline_ns = deadline
  if self.table.submit(self.number, submission, 1, self.count, self.error) ~= abi.OK then
    self:leave(entry)
    self:recycle(entry)
    return nil, self:failure()
  end
  self.calls = self.calls + 1
  self.expected = self.expected + 1
  return submission.call
end

--- The deadline for a timeout in seconds.
function Port:deadline(timeout)
  local wanted = timeout * 1e9
  if wanted >= 9e18 then return abi.FOREVER end
  return self.table.now() + ffi.cast("uint64_t", wanted)
end

-- Dispatching

function Port:deliver(completion)
  local token = tonumber(completion.token)
  local entry = self.entries[token % SLOTS]
  local kind = completion.kind
  if entry == nil or entry.token ~= token then
    self.table.release(completion)
  elseif kind == CALL then
    self:leave(entry)
    self.expected = math.max(self.expected - 1, 0)
    if has_caller(entry.parker) then
      copy(entry.completion, completion, COMPLETION_SIZE)
      entry.is_done = true
      post(entry.parker)
    else
      self.table.release(completion)
    end
  elseif kind == NOTICE then
    entry.elapsed = tonumber(ffi.cast("const uint64_t *", completion.data)[0])
    self.table.release(completion)
    post(entry.parker)
  elseif kind == STREAM_READY then
    self.table.release(completion)
    self:leave(entry)
    entry.is_ready = true
    post(entry.parker)
  else
    entry.serve(completion)
  end
end

--- Delivers completions. Returns true if there may be more. Rule 6.
function Port:drain()
  local table, reaped, count = self.table, self.reaped, self.count
  local has_yielded = false
  for _ = 1, ROUNDS do
    if table.port_reap(self.number, reaped, REAP, count, self.error) ~= abi.OK then
      error(self:failure(), 0)
    end
    local got = count[0]
    for i = 0, got - 1 do
      self:deliver(reaped[i])
    end
    if got < REAP and (has_yielded or got == 0 or self.expected == 0) then
      if has_yielded and got == 0 then
        self.expected = 0
      end
      return false
    elseif got < REAP then
      has_yielded = true
      ffi.C.thalweg_sched_yield()
    end
  end
  return true
end

--- Lets other events of the worker run before the caller of the parker continues. Without a patch of
-- nginx, `ngx.sleep(0)` does that only with a warning in the log.
function Port:turn(parker)
  self.turns[#self.turns + 1] = parker
  if self.waking then
    self.waking:wake()
  elseif not self.is_dispatching then
    self:dispatch()
  end
  return parkers.park(parker)
end

function Port:end_turn()
  local turns = self.turns
  if #turns > 0 then
    self.turns = {}
    for _, parker in ipairs(turns) do
      post(parker)
    end
  end
end

--- Delivers completions until the worker exits and nobody waits.
function Port:run_with(waker)
  local is_exiting = ngx.worker.exiting
  while true do
    self:end_turn()
    if self:drain() then
      waker:wake()
      waker:wait()
    elseif is_exiting() and self.waiting == 0 then
      break
    elseif self.table.port_arm(self.number, self.ready, self.error) ~= abi.OK then
      error(self:failure(), 0)
    elseif self.ready[0] == 0 then
      self.waking = waker
      waker:wait()
      self.waking = nil
      self.wakes = self.wakes + 1
    end
  end
end

function Port:run()
  local waker = assert(self.waker.new(self))
  local ok, why = pcall(self.run_with, self, waker)
  waker:close()
  if not ok then error(why, 0) end
end

--- The dispatcher has failed: ends all waits. The next call starts it again.
function Port:fail(why)
  ngx.log(ngx.ERR, "thalweg: completions of ", self.path, " cannot be received: ", why)
  self.broken = errors.new("overloaded", "completions cannot be received: " .. why, true)
  for _, entry in pairs(self.entries) do
    if entry.parker then
      self:leave(entry)
      entry.is_ready = true
      if entry.completion then
        entry:cancel()
        entry.completion.code, entry.completion.retryable = abi.OVERLOADED, 0
        entry.is_done = true
      end
      post(entry.parker)
    end
  end
end

--- Starts the dispatcher.
function Port:dispatch()
  self.is_dispatching = true
  local function run(premature)
    self.broken = nil
    local ok, why = true, nil
    if not premature or self.waiting > 0 then
      ok, why = pcall(self.run, self)
    end
    self.is_dispatching = false
    self.host_threads:stop()
    if not ok then self:fail(tostring(why)) end
  end
  assert(ngx.timer.at(0, run))
  self:watch_exit()
end

--- Wakes the dispatcher when the worker begins to exit: nginx then runs pending timers early.
function Port:watch_exit()
  if self.is_watching or ngx.worker.exiting() then return end
  self.is_watching = true
  assert(ngx.timer.at(LONG, function(premature)
    self.is_watching = false
    if not premature then
      self:watch_exit()
    elseif self.waking then
      self.waking:wake()
    end
  end))
end

return M
