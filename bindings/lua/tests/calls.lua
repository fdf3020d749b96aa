--- Calls: values, errors, options, resources, phases.
local check = require "check"
local conformance = require "conformance"
local echo = require "echo"
local ffi = require "ffi"
local libraries = require "libraries"
local thalweg = require "thalweg"

local equal, failed = check.equal, check.failed

local client

local function open(options)
  return assert(conformance.open(libraries.conformance, options))
end

local M = {}

--- Opens the clients that the tests share.
function M.init_worker()
  client = open()
end

function M.options_reach_a_service_without_host_imports()
  local opened, err = echo.open(libraries.echo, { host = 7 })
  failed(opened, err, "argument", "host: expected a table")
end

function M.text_with_nul_is_unchanged()
  local bytes = "\0a\0\255" .. ("x"):rep(100000)
  equal(client:echo_bytes(bytes), bytes)
  equal(client:echo_string("\0"), "\0")
  equal(client:echo_string(""), "")
end

function M.numbers_of_64_bits_are_exact()
  equal(client:echo_u64(2 ^ 53), 9007199254740992ULL)
  equal(client:echo_u64(18446744073709551615ULL), 18446744073709551615ULL)
  equal(client:echo_s64(-9223372036854775807LL), -9223372036854775807LL)
  equal(client:echo_u64(5LL), 5ULL)
end

function M.value_of_wrong_type_is_refused_by_name()
  local point = { x = 1, y = 2 ^ 40 }
  local value, err = client:echo_point(point)
  failed(value, err, "argument", "echo-point: y: expected an integer from")
  value, err = client:echo_point(7)
  failed(value, err, "argument", "expected a table, got 7")
  value, err = client:echo_u64(-1)
  failed(value, err, "argument", "0 to 2^53")
  value, err = client:echo_u64(-1LL)
  failed(value, err, "argument")
  value, err = client:echo_u8(0 / 0)
  failed(value, err, "argument")
  value, err = client:echo_char("ab")
  failed(value, err, "argument", "one character")
  value, err = client:echo_char("\237\160\128")
  failed(value, err, "argument", "one character")
  value, err = client:echo_color("purple")
  failed(value, err, "argument", "red, green, bool")
  value, err = client:echo_shape({ tag = "square" })
  failed(value, err, "argument", "a case of shape")
  value, err = client:echo_names(7)
  failed(value, err, "argument", "value: expected a table")
  value, err = client:echo_key("short")
  failed(value, err, "argument", "a string of 16 bytes")
  value, err = client:echo_string("\255")
  failed(value, err, "argument")
  value, err = client:echo_tuple(7)
  failed(value, err, "argument")
  equal(client:echo_u8(7), 7)
end

function M.option_in_a_list_is_null()
  local pairs_of = { { "a", thalweg.null }, { "b", "bytes" } }
  local value = {
    text = "", bytes = "", names = {}, grid = {}, outcomes = {}, pairs = pairs_of, shapes = {},
    color = "red", rights = { read = true }, aliased = {},
  }
  local nested = assert(client:echo_nested(value))
  equal(nested.pairs[1][2], nil)
  equal(nested.pairs[2][2], "bytes")
  equal(nested.maybe, nil)
  equal(nested.rights.read, true)
  equal(nested.rights.write, nil)
  local stream = assert(client:maybes(4))
  local all = {}
  for one in stream do all[#all + 1] = one end
  equal(#all, 4)
  equal(all[2], thalweg.null)
  equal(all[3], "2")
end

function M.value_that_calls_while_it_is_read_uses_another_message()
  local value = setmetatable({ y = 2 }, { __index = function()
    return assert(client:twice(4)) == 8ULL and 1 or 0
  end })
  local point = assert(client:echo_point(value))
  equal(point.x, 1)
  equal(point.y, 2)
end

function M.own_error_has_its_payload()
  local value, err = client:fail({ tag = "code", value = 7 })
  failed(value, err, "error", "code: 7")
  equal(err.payload.tag, "code")
  equal(err.payload.value, 7)
  equal(err.retryable, false)
  value, err = client:fail_bare(true)
  failed(value, err, "error")
  equal(err.payload, nil)
  equal(client:fail_bare(false), true)
  equal(thalweg.is_error(err), true)
end

function M.panic_is_an_error_and_the_service_goes_on()
  local value, err = client:panic("on purpose")
  failed(value, err, "guest_panicked", "on purpose")
  equal(client:echo_u8(1), 1)
  value, err = client:panic_here("on this thread")
  failed(value, err, "guest_panicked", "on this thread")
end

function M.timeout_ends_the_call_and_the_next_one_works()
  local value, err = client:sleep(400, { timeout = 0.01 })
  failed(value, err, "timed_out")
  equal(client:sleep(1), 1)
  value, err = client:sleep(400, { timeout = 0 })
  failed(value, err, "timed_out")
  equal(client:sleep(1, { timeout = 1e300 }), 1)
end

function M.wrong_options_are_refused()
  for _, options in ipairs { 7, { timeout = -1 }, { timeout = 0 / 0 }, { on_notice = 1 }, { cancel = {} } } do
    local value, err = client:nothing(options)
    failed(value, err, "argument", "conformance.nothing")
  end
end

function M.token_cancels_its_calls()
  local token = thalweg.cancel_token()
  local thread = ngx.thread.spawn(function() return client:never({ cancel = token }) end)
  check.eventually(function() return client:waiting() > 0 end, "the call")
  token:cancel()
  local _, value, err = ngx.thread.wait(thread)
  failed(value, err, "cancelled")
  value, err = client:never({ cancel = token })
  failed(value, err, "cancelled")
end

function M.notices_are_reported_and_can_cancel()
  local token = thalweg.cancel_token()
  local times = {}
  local value, err = client:never({
    cancel = token,
    on_notice = function(seconds)
      times[#times + 1] = seconds
      if #times == 3 then token:cancel() end
    end,
  })
  failed(value, err, "cancelled")
  assert(times[1] >= 0.001 and times[3] > times[1], times[1])
  value, err = client:never({ on_notice = function() error("on purpose") end })
  failed(value, err, "argument", "on purpose")
  value, err = client:nothing({ on_notice = function() end })
  failed(value, err, "argument")
end

function M.light_threads_call_at_the_same_time()
  local threads, order = {}, {}
  for i = 1, 20 do
    threads[i] = ngx.thread.spawn(function()
      local result = client:sleep(40 - i)
      order[#order + 1] = result
      return result
    end)
  end
  for i = 1, 20 do
    local _, result = ngx.thread.wait(threads[i])
    equal(result, 40 - i)
  end
  equal(#order, 20)
end

function M.coroutine_of_lua_can_call()
  local wrapped = coroutine.wrap(function() return client:echo_u8(9) end)
  equal(wrapped(), 9)
end

function M.timer_can_call()
  local result
  assert(ngx.timer.at(0, function() result = client:echo_u8(3) end))
  check.eventually(function() return result == 3 end, "the timer")
end

function M.killed_light_thread_leaves_nothing()
  local thread = ngx.thread.spawn(function() return client:sleep(30) end)
  ngx.thread.kill(thread)
  check.eventually(function() return client._port.waiting == 0 end, "the end of the call")
  equal(client:echo_u8(1), 1)
end

function M.resource_is_closed_once_and_refused_afterwards()
  local counter = assert(client:counter(5))
  equal(counter:add(2), 7ULL)
  counter:close()
  counter:close()
  local value, err = counter:add(1)
  failed(value, err, "closed")
  value, err = client:counter_sum(counter, counter)
  failed(value, err, "closed")
end

function M.resource_that_is_given_away_is_closed()
  local counter = assert(client:counter(5))
  equal(client:counter_finish(counter), 5ULL)
  local value, err = counter:value()
  failed(value, err, "closed")
  counter = assert(client:counter(5))
  value, err = client:total({ counter, counter })
  failed(value, err, "argument", "passed already")
  equal(counter:value(), 5ULL)
  equal(client:total({ counter, assert(client:counter(6)) }), 11ULL)
end

function M.resource_of_another_library_is_refused()
  local other = assert(echo.open(libraries.echo))
  local timer = assert(other:timer("clock"))
  local value, err = client:counter_finish(timer)
  failed(value, err, "argument", "an open counter")
  value, err = client:counter_finish(nil)
  failed(value, err, "argument", "an open counter")
  equal(assert(timer:echo({ message = "m", delay_ms = 0 })).name, "clock")
  other:close()
end

function M.garbage_is_closed()
  assert(client:counter(1))
  check.eventually(function() return client:counters() == 0 end, "the end of the counter")
end

function M.closed_client_ends_its_calls()
  local other = open()
  local thread = ngx.thread.spawn(function() return other:never() end)
  check.eventually(function() return other:waiting() > 0 end, "the call")
  other:close()
  local _, value, err = ngx.thread.wait(thread)
  failed(value, err, "cancelled")
  value, err = other:nothing()
  failed(value, err, "closed")
end

function M.large_request_and_reply_are_unchanged()
  local bytes = ("0123456789abcdef"):rep(1024 * 1024)
  equal(client:echo_bytes(bytes), bytes)
  equal(client:echo_u8(1), 1)
end

--- The number of calls whose string the library has borrowed.
local function borrowed()
  local count = 0
  for _, entry in pairs(client._port.entries) do
    if entry.borrowed then count = count + 1 end
  end
  return count
end

function M.string_of_any_size_and_place_is_unchanged()
  for _, size in ipairs { 1, 4095, 4096, 4097, 102400, 1048576 } do
    local text, bytes = ("t"):rep(size), ("\255"):rep(size)
    equal(client:echo_string(text), text)
    equal(client:echo_bytes(bytes), bytes)
    local strings = assert(client:echo_strings({ text, "", "short", text, "end" }))
    equal(table.concat(strings, " "), text .. "  short " .. text .. " end")
    strings = assert(client:echo_strings({ "short", text }))
    equal(table.concat(strings), "short" .. text)
    equal(assert(client:several(1, text, { 1, 2 }, { x = 1, y = 2 }))[2], text)
    local nested = assert(client:echo_tuple({ 1, text, 0.5, nil }))
    equal(nested[2], text)
  end
  equal(borrowed(), 0)
end

function M.large_string_that_is_malformed_or_with_a_resource()
  local text = ("x"):rep(20000)
  local value, err = client:echo_string(text .. "\255")
  failed(value, err, "argument", "UTF-8")
  value, err = client:panic(text)
  failed(value, err, "guest_panicked", text)
  value, err = client:panic_here(text)
  failed(value, err, "guest_panicked", text)
  equal(assert(client:later(1, text)), text)
  local counter = assert(client:counter(5))
  local sum = assert(client:many(1, 2, 3, 4, 5, "f", 7, 8, "i", 10, 11, text, counter, 15))
  equal(sum[2]:find(text, 1, true) ~= nil, true)
end

--- The service reads a stream, so that other calls wait, until the returned function is called.
local function block()
  local is_blocked = true
  local thread = ngx.thread.spawn(function()
    return client:names_of(function()
      while is_blocked do ngx.sleep(0.001) end
    end)
  end)
  return function()
    is_blocked = false
    local _, names = ngx.thread.wait(thread)
    equal(names, "")
  end
end

function M.borrowed_string_is_anchored_until_the_call_has_ended()
  local unblock = block()
  local text = ("x"):rep(100000)
  local value, err = client:echo_string(text, { timeout = 0.01 })
  failed(value, err, "timed_out")
  equal(borrowed(), 0)
  local token = thalweg.cancel_token()
  local cancelled = ngx.thread.spawn(function() return client:echo_string(text .. "c", { cancel = token }) end)
  local killed = ngx.thread.spawn(function() return client:echo_string(text .. "k") end)
  equal(borrowed(), 2)
  ngx.thread.kill(killed)
  token:cancel()
  local _
  _, value, err = ngx.thread.wait(cancelled)
  failed(value, err, "cancelled")
  equal(borrowed(), 1)
  collectgarbage()
  equal(borrowed(), 1)
  unblock()
  check.eventually(function() return borrowed() == 0 end, "the end of the call")
end

function M.caller_that_waits_a_moment_lets_other_events_run()
  local port = client._port
  local before = port.moment
  port.moment = 50000
  local has_run = false
  assert(ngx.timer.at(0, function() has_run = true end))
  repeat
    equal(client:echo_u8(7), 7)
  until has_run
  check.eventually(function()
    for _ = 1, 100 do equal(client:echo_u8(7), 7) end
    return port.direct_calls > 0
  end, "a call without the dispatcher")
  local value, err = client:never({ timeout = 0.001 })
  failed(value, err, "timed_out")
  port.moment = before
end

function M.message_larger_than_the_limit_is_refused()
  local writer = require("thalweg.writer").new()
  local root = writer:begin("it", 0, 0, 8)
  local ok, err = pcall(writer.list, writer, root, 2 ^ 31, 1, 1)
  equal(ok, false)
  equal(err.code, "argument")
  assert(err.message:find("2 GiB", 1, true), err.message)
end

function M.use_leaves_nothing_behind()
  local token = thalweg.cancel_token()
  token:cancel()
  local function use()
    client:echo_string(("x"):rep(10000))
    client:fail({ tag = "unknown" })
    client:never({ timeout = 0.0001 })
    client:never({ cancel = token })
    client:sum_of({ 1, 2, 3 })
    client:echo_u8(-1)
    local counter = client:counter(1)
    client:total({ counter })
    local stream = client:count(0, 300)
    for _ in stream do end
    client:endless():next()
    client:counter(2)
    client:later(1, "text")
    ngx.thread.kill(ngx.thread.spawn(function() client:never({ timeout = 0.001 }) end))
  end
  local function settle()
    local counters = ffi.new("tw_counters")
    local port = client._port
    check.eventually(function()
      port.table.counters(counters, ffi.sizeof(counters), nil)
      return counters.calls == 0 and counters.streams == 0 and counters.resources == 0
        and counters.completions == 0 and port.waiting == 0 and client:counters() == 0
    end, "the end of all objects")
    collectgarbage()
    return collectgarbage("count")
  end
  for _ = 1, 100 do use() end
  local before = settle()
  for _ = 1, 300 do use() end
  local after = settle()
  assert(after < before + 200, after - before .. " KiB more")
end

return M
