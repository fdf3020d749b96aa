--- A call, from its arguments to its result.
local abi = require "thalweg.abi"
local abort = require "thalweg.abort"
local cancel = require "thalweg.cancel"
local errors = require "thalweg.errors"
local phase = require "thalweg.phase"
local parkers = require "thalweg.parker"
local upstream = require "thalweg.upstream"
local writers = require "thalweg.writer"

local OK, ERROR = abi.OK, abi.ERROR
local park = parkers.park
local pcall, type = pcall, type

--- Writes the message of a call.
local function encode(writer, method, of, handles, a, b, c, d, e, f)
  local root = writer:begin(method.name, method.layouts[1], handles, method.params)
  if of ~= of._client then
    if method.destroys then
      writer:own(root, of, getmetatable(of), "self")
    else
      writer:borrow(root, of, getmetatable(of), "self")
    end
  end
  if method.put then
    method.put(writer, root, a, b, c, d, e, f)
  end
end

local function encode_all(writer, method, of, borrows, a, b, c, d, e, f)
  local handles = method.handles
  if handles == math.huge then
    encode(writer, method, of, handles, a, b, c, d, e, f)
    handles = writer:abandon()
  end
  encode(writer, method, of, handles, a, b, c, d, e, f)
  writer:finish(borrows)
end

--- Reads the result from a completion, and releases it.
local function result(port, client, method, completion)
  local code, is_retryable = completion.code, completion.retryable ~= 0
  local shape, layout
  if code == OK then
    shape, layout = method.ok, method.layouts[2]
  elseif code == ERROR then
    shape, layout = method.error, method.layouts[3]
  end
  if not shape then
    local failure = errors.of_completion(completion)
    port.table.release(completion)
    return nil, failure
  end
  local message = port.message
  message.method, message.client, message.completion = method, client, completion
  local ok, value = pcall(message.read, message, completion.data, completion.data_size, layout, shape)
  message.client, message.completion = nil, nil
  port.table.release(completion)
  if not ok then
    return nil, errors.wrap(value, method.name)
  elseif code == ERROR then
    return nil, errors.service(value, is_retryable)
  end
  return value
end

---@class thalweg.Options
---@field timeout number?
---@field cancel table?
---@field on_notice function?
local DEFAULTS = {}

--- Checks the options of a call. Returns nil and an error if one is wrong.
local function checked(method, options)
  if options == nil then
    return DEFAULTS
  elseif type(options) ~= "table" then
    return nil, errors.argument(method.name .. ": options: expected a table")
  end
  local timeout, on_notice, token = options.timeout, options.on_notice, options.cancel
  if timeout ~= nil and not (type(timeout) == "number" and timeout >= 0) then
    return nil, errors.argument(method.name .. ": timeout: expected seconds, 0 or more")
  elseif on_notice ~= nil and type(on_notice) ~= "function" then
    return nil, errors.argument(method.name .. ": on_notice: expected a function")
  elseif token ~= nil and not cancel.is(token) then
    return nil, errors.argument(method.name .. ": cancel: expected a token of thalweg.cancel_token")
  end
  return options
end

--- These resources belong to the service.
local function give(given)
  for i = 1, #given do
    given[i]._cell.number = 0
  end
end

--- Waits until the call has ended. Meanwhile it sends the elements of parameters that are streams,
-- and reports progress. Returns an error if a function of the program has raised it.
local function wait(port, entry, call, method, options, senders)
  local parker = entry.parker
  local raised
  local function run(f, argument)
    parker.is_busy = true
    local ok, why = pcall(f, argument)
    parker.is_busy = false
    if not ok and not raised then
      raised = errors.wrap(why, method.name .. ": on_notice")
      port.table.cancel(call, nil)
    end
  end
  while not entry.is_done do
    if entry.elapsed then
      local elapsed = entry.elapsed / 1e9
      entry.elapsed = nil
      run(options.on_notice, elapsed)
    end
    if senders and not raised then
      run(upstream.send, senders)
    end
    if not entry.is_done then
      local ok, why = park(parker)
      if not ok then return why end
    end
  end
  return raised
end

--- The same for a call that ends with its request or its token.
local function watched_wait(port, entry, call, method, options, senders)
  local watched, token = abort.watch(entry), options.cancel
  if token then
    token.calls[entry] = true
  end
  local raised
  if not senders then -- LuaJIT does not compile a function with a loop, and most calls wait once
    local is_awake, why = park(entry.parker)
    raised = not is_awake and why or nil
  end
  if not entry.is_done and not raised then
    raised = wait(port, entry, call, method, options, senders)
  end
  if token then
    token.calls[entry] = nil
  end
  if watched then
    watched[entry] = nil
  end
  return raised
end

-- Runs a call on this thread. False: it was refused.
local function run_here(port, client, method, writer, deadline)
  return port.table.call_inline(client._cell.number, method.number, writer.data, writer.size,
    deadline, port.inline_completion, port.error) == OK
end

--- Calls `method` of a client, or of a resource, which is then the first handle of the message.
-- Returns the result, or nil and an error. The further parameters are those of the function; if it has
-- more than six, the first one is a table with all. LuaJIT does not compile variable arguments.
local function call(of, method, options, a, b, c, d, e, f)
  local client = of._client
  local port = of._port
  if of._cell.number == 0 or client._cell.number == 0 then
    return nil, errors.new("closed", method.name .. ": the client or resource is closed")
  end
  local is_inline = port.inline[method.number]
  if not is_inline and not phase.can_wait() then return nil, phase.refused(method.name) end
  local failure
  options, failure = checked(method, options)
  if not options then return nil, failure end
  local token = options.cancel
  if token and token.is_cancelled then
    return nil, errors.new("cancelled", method.name .. ": the token was cancelled")
  end

  local writer = port.writer
  if writer.is_open then
    writer = writers.new()
    writer.port = port
  end
  local ok, raised = pcall(encode_all, writer, method, of, not is_inline, a, b, c, d, e, f)
  if not ok then
    writer:abandon()
    return nil, errors.wrap(raised, method.name)
  end
  local deadline = options.timeout and port:deadline(options.timeout) or 0
  if is_inline then
    if not run_here(port, client, method, writer, deadline) then return nil, port:failure() end
    return result(port, client, method, port.inline_completion)
  end

  local senders
  local given = writer.given
  if port.brief[method.number] and not writer.borrowed
      and run_here(port, client, method, writer, deadline) then
    give(given)
    return result(port, client, method, port.inline_completion)
  end
  if #writer.upstreams > 0 then
    senders, failure = upstream.open(port, client, method, writer)
    if not senders then return nil, failure end
  end
  local entry = port:enter_call()
  local flags = options.on_notice and abi.SUBMIT_NOTICES or 0
  local number
  number, failure = port:submit(entry, client._cell.number, method.number, flags, deadline, writer)
  if not number then
    if senders then
      upstream.close(senders)
    end
    return nil, failure
  end
  if #given > 0 then
    give(given)
  end
  if senders then
    upstream.begin(senders, entry.parker)
  end
  entry.call = number
  if not senders then
    port:wait_a_moment(entry)
  end
  raised = not entry.is_done and watched_wait(port, entry, number, method, options, senders) or nil
  if senders then
    upstream.close(senders)
  end
  if not entry.is_done then -- the phase cannot wait, and rule 4 of port.lua applies
    port.table.cancel(number, nil)
    return nil, raised
  end
  local value
  value, failure = result(port, client, method, entry.completion)
  port:recycle(entry)
  failure = raised or failure
  if failure then
    return nil, failure
  elseif method.is_future then
    return value:get()
  end
  return value
end

return call
