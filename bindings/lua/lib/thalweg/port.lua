--- The port of a library in this worker: it submits calls, and wakes their callers.
--
-- 1. A worker has one port for each library. Everything here runs in the worker's event loop.
-- 2. Each wait has an *entry*: a call, a stream, the host of a client, or the log. Its number, which the core
--    carries as a token, is its slot and a generation. A completion whose entry is gone is released.
-- 3. A caller waits on the semaphore of its *parker*. The dispatcher, a light thread of a timer,
--    reaps completions, copies each one into its entry and posts the semaphore.
-- 4. An entry leaves its slot when its last completion is delivered, and returns to the pool when
--    its caller has continued. If nginx has ended the caller, because its client has gone, the entry
--    becomes garbage: the finalizer of its completion releases it.
-- 5. The dispatcher is woken by `waker`: wake_socket.lua or wake_event.lua. It ends when the worker
--    exits and nobody waits. A later call starts it again.
-- 6. On one processor, the first completion of many calls wakes the worker before the service has run the
--    others. While calls are outstanding, the dispatcher therefore lets the service run before it waits:
--    `port_spin`.
-- 7. A caller that waits alone first waits a moment without sleeping, on the port itself, and delivers its
--    own completion. After FAIR such calls in a row, one waits as usual, so that other events run.
-- 8. The library reads a large string of a call in place, until the call has completed. The string is
--    anchored in the entry, which stays in its slot until then, also if the caller is gone. At the end of
--    the worker, the finalizer of `anchor` closes the port before Lua frees its strings.
local abi = require "thalweg.abi"
local errors = require "thalweg.errors"
local ffi = require "ffi"
local message = require "thalweg.message"
local parkers = require "thalweg.parker"
local threads = require "thalweg.threads"
local writer = require "thalweg.writer"

local copy, gc = ffi.copy, ffi.gc
local post, has_caller = parkers.post, parkers.has_caller
local BYTES = ffi.typeof("const uint8_t *")
local COMPLETION_SIZE = ffi.sizeof("tw_completion")
local CALL, NOTICE, STREAM_READY = abi.COMPLETION_CALL, abi.COMPLETION_NOTICE, abi.COMPLETION_STREAM_READY

--- Completions of one reap, and reaps before other events of the loop run.
local REAP = 32
local ROUNDS = 8
--- The number of slots fits the lower half of a token.
local SLOTS = 65536
--- Tokens are exact in a double.
local GENERATIONS = 2 ^ 36
--- The levels of nginx for those of log records, from TW_LOG_ERROR on.
local LOG_LEVELS = { ngx.ERR, ngx.WARN, ngx.NOTICE }
--- The delay of a timer that nobody waits for, in seconds.
local LONG = 1000000

--- Rule 7.
local FAIR = 64

local Port = {}
Port.__index = Port

local M = {
  --- Slots of a port: the most outstanding calls of a worker. As in the packages of other languages.
  capacity = 16384,
  --- All ports of this worker.
  all = {},
}

--- Whether this worker can use only one processor.
local function is_on_one_processor()
  local file = io.open("/proc/self/status")
  local list = file and file:read("*a"):match("Cpus_allowed_list:%s*(%S+)") or ""
  if file then file:close() end
  return list:match("^%d+$") ~= nil
end

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
    --- Entries that wait for a completion, without hosts and the log.
    waiting = 0,
    pool = {},
    submission = ffi.new("tw_submission"),
    borrowed = ffi.new("tw_borrowed_args"),
    anchor = nil,
    count = ffi.new("uint32_t[1]"),
    ready = ffi.new("uint32_t[1]"),
    reaped = ffi.new("tw_completion[?]", REAP),
    inline_completion = ffi.new("tw_completion"),
    is_dispatching = false,
    host_threads = threads.new(),
    --- Rule 7. `moment`: the longest spin in nanoseconds, 0 on one processor, where the caller yields,
    -- or nil. `direct`: the entry of the caller that waits like that. `in_a_row`: such calls since the
    -- dispatcher was woken. `batch`: completions that it then received.
    moment = is_on_one_processor() and 0 or nil,
    direct = nil,
    in_a_row = 0,
    batch = 0,
    --- Numbers for `metrics`.
    calls = 0,
    direct_calls = 0,
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
  self.anchor = gc(number, function() table.port_close(number[0], nil) end)
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
  if not entry.serve then
    self.waiting = self.waiting + 1
  end
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
    if not entry.serve then
      self.waiting = self.waiting - 1
    end
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
      borrowed = nil,
      call = nil,
      token = 0,
    }, Call)
  end
  self:enter(entry)
  return entry
end

--- Returns the entry of a call to the pool. Its completion was released.
function Port:recycle(entry)
  entry.borrowed = nil
  entry.is_done = false
  entry.elapsed = nil
  self.pool[#self.pool + 1] = entry
end

--- Writes the library's log records to the error log, whose level decides which ones it has.
function Port:receive_log()
  local table = self.table
  local entry = { serve = function(completion)
    ngx.log(LOG_LEVELS[completion.code], "thalweg: ", ffi.string(completion.message, completion.message_size))
    table.release(completion)
  end }
  self:enter(entry)
  table.log_set_port(self.number, entry.token, abi.LOG_INFO, nil)
end

-- Submitting

--- Submits the message of `writer` as a call. Returns the core's handle of the call, or nil and an
-- error.
function Port:submit(entry, client, method, flags, deadline, from)
  local submission = self.submission
  submission.token = entry.token
  submission.client = client
  submission.method = method
  if from.borrowed then
    local borrowed = self.borrowed
    entry.borrowed = from.borrowed -- anchored until the completion: rule 8
    borrowed.tail, borrowed.tail_size = from.borrowed, #from.borrowed
    borrowed.head, borrowed.head_size = from.data, from.size - borrowed.tail_size
    flags = flags + abi.SUBMIT_BORROWED
    submission.args, submission.args_size = ffi.cast(BYTES, borrowed), ffi.sizeof(borrowed)
  else
    submission.args, submission.args_size = from.data, from.size
  end
  submission.flags = flags
  submission.deadline_ns = deadline
  if self.table.submit(self.number, submission, 1, self.count, self.error) ~= abi.OK then
    self:leave(entry)
    self:recycle(entry)
    return nil, self:failure()
  end
  self.calls = self.calls + 1
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
    local is_direct = entry == self.direct
    if is_direct or has_caller(entry.parker) then
      copy(entry.completion, completion, COMPLETION_SIZE)
      entry.is_done = true
      if not is_direct then
        post(entry.parker)
      end
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

--- Delivers completions. Returns whether there may be more, and their number.
function Port:drain()
  local table, reaped, count = self.table, self.reaped, self.count
  local total = 0
  for _ = 1, ROUNDS do
    if table.port_reap(self.number, reaped, REAP, count, self.error) ~= abi.OK then
      error(self:failure(), 0)
    end
    local got = count[0]
    total = total + got
    for i = 0, got - 1 do
      self:deliver(reaped[i])
    end
    if got < REAP then return false, total end
  end
  return true, total
end

--- Arms the port. With `max_ns`, it first waits a moment: rules 6 and 7. Returns whether there are
-- completions.
function Port:arm(max_ns)
  local table, ready = self.table, self.ready
  local code
  if max_ns then
    code = table.port_spin(self.number, max_ns, ready, self.error)
  else
    code = table.port_arm(self.number, ready, self.error)
  end
  if code ~= abi.OK then error(self:failure(), 0) end
  return ready[0] ~= 0
end

--- Waits a moment for the end of the call that was just submitted: rule 7.
function Port:wait_a_moment(entry)
  if not self.moment or self.waiting > 1 or self.batch > 1 or self.in_a_row >= FAIR then
    return
  end
  self.in_a_row = self.in_a_row + 1
  self.direct = entry
  local is_ready = self:arm(self.moment)
  while is_ready do
    self:drain()
    is_ready = self:arm()
  end
  self.direct = nil
  if entry.is_done then
    self.direct_calls = self.direct_calls + 1
  end
end

--- Delivers completions until the worker exits and nobody waits.
function Port:run_with(waker)
  local is_exiting = ngx.worker.exiting
  while true do
    local is_more, count = self:drain()
    if count > 0 then
      self.in_a_row, self.batch = 0, count
    end
    if is_more then
      waker:wake()
      waker:wait()
    elseif is_exiting() and self.waiting == 0 then
      break
    elseif not self:arm(self.waiting > 0 and 0 or nil) then
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
