--- Streams in both directions, futures, and host imports.
local check = require "check"
local conformance = require "conformance"
local libraries = require "libraries"
local thalweg = require "thalweg"

local equal, failed = check.equal, check.failed

local client, hosted

local host = {
  look_up = function(key)
    ngx.sleep(0.001)
    if key % 2 == 1 then
      return nil, key
    end
    return "number " .. tostring(tonumber(key))
  end,
  tell = function() error("no answer", 0) end,
  nod = function() end,
}

local M = {}

function M.init_worker()
  client = assert(conformance.open(libraries.conformance))
  hosted = assert(conformance.open(libraries.conformance, { host = host }))
end

function M.loop_reads_all_records()
  local stream, sum, count = assert(client:count(1, 5000)), 0, 0
  for number in stream do
    sum, count = sum + number, count + 1
  end
  equal(stream.err, nil)
  equal(count, 5000)
  equal(sum, 12502500ULL)
  equal(stream:next(), nil)
end

function M.records_that_need_no_wait_are_counted()
  local stream = assert(client:count(1, 300))
  equal(stream:buffered(), 0)
  local seen = 0
  while stream:next() do
    seen = seen + 1
    for _ = 1, stream:buffered() do
      local before = stream:buffered()
      assert(stream:next())
      equal(stream:buffered(), before - 1)
      seen = seen + 1
    end
  end
  equal(seen, 300)
  equal(stream:buffered(), 0)
end

function M.stream_that_breaks_has_an_error()
  local counter = assert(client:counter(0))
  local stream, last = assert(counter:steps(1000000)), nil
  equal(stream:next(), 1ULL)
  client:panic("on purpose") -- the stream has a writer of its own
  for number in stream do last = number end
  equal(stream.err, nil)
  equal(last, 1000000ULL)
  local err
  stream, err = client:breaks(10)
  if stream then -- otherwise the panic has come before the result
    while stream:next() do end
    err = stream.err
    local value, again = stream:next()
    equal(value, nil)
    equal(again, err)
  end
  failed(nil, err, "guest_panicked", "broken after 10")
end

function M.own_error_at_the_end_has_its_payload()
  local stream = assert(client:stops(2, "fail"))
  local count = 0
  for _ in stream do count = count + 1 end
  equal(count, 2)
  failed(nil, stream.err, "error", "code: 2")
  equal(stream.err.payload.value, 2)
end

function M.deadline_covers_the_stream()
  local stream = assert(client:endless({ timeout = 0.05 }))
  for _ in stream do ngx.sleep(0.001) end
  failed(nil, stream.err, "timed_out")
end

function M.closed_stream_stops_the_service()
  local stream = assert(client:endless())
  equal(stream:next(), 0ULL)
  equal(client:running(), 1)
  stream:close()
  stream:close()
  check.eventually(function() return client:running() == 0 end, "the end of the writer")
  equal(stream:next(), nil)
end

function M.garbage_stops_the_service()
  assert(client:endless()):next()
  check.eventually(function() return client:running() == 0 end, "the end of the writer")
end

function M.reader_that_waits_is_woken_by_close()
  local stream = assert(client:ticks())
  local thread = ngx.thread.spawn(function() return stream:next() end)
  local value, err = stream:next()
  failed(value, err, "argument", "another light thread")
  stream:close()
  local _, record, why = ngx.thread.wait(thread)
  equal(record, nil)
  equal(why, nil)
  check.eventually(function() return client._port.waiting == 0 end, "the end of the wait")
end

function M.lost_records_are_counted()
  local stream, count = assert(client:drops_newest(1000)), 0
  for _ in stream do count = count + 1 end
  equal(count + stream.lost, 1000)
  equal(stream.gap_reason, "dropped-newest")
  assert(stream.lost > 0)
end

function M.future_is_waited_for()
  equal(client:later(5, "a text"), "a text")
  local value, err = client:never_comes(nil)
  failed(value, err, "guest_lost")
  value, err = client:later(5000, "", { timeout = 0.01 })
  failed(value, err, "timed_out")
  local feeds = assert(client:feeds(2))
  equal(feeds[2].last:get(), "1")
  equal(feeds[2].last:get(), "1")
  equal(feeds[1].last, nil)
end

function M.parameter_is_sent_from_a_function_or_table()
  local next_number = 0
  local sum = assert(client:sum_of(function()
    next_number = next_number + 1
    if next_number % 100 == 0 then ngx.sleep(0.001) end
    return next_number <= 1000 and next_number or nil
  end))
  equal(sum[1], 1000ULL)
  equal(sum[2], 500500ULL)
  equal(assert(client:sum_of({ 1, 2, 3 }))[2], 6ULL)
  equal(assert(client:first_numbers(2, { 1, 2, 3, 4 }))[2], 2ULL)
  local numbers = {}
  for i = 1, 2000 do numbers[i] = i end
  local words = assert(client:words_first(numbers, { "a", "b" }))
  equal(words[1], "ab")
  equal(words[2], 2001000ULL)
  equal(client:hear(function() return "later" end), "later")
  local value, err = client:hear(thalweg.no_value)
  failed(value, err, "error")
end

function M.error_of_a_parameter_cancels_the_call()
  local value, err = client:sum_of(function() error("on purpose") end)
  failed(value, err, "argument", "numbers: on purpose")
  value, err = client:sum_of({ 1, "two" })
  failed(value, err, "argument", "numbers: element: expected an integer")
  value, err = client:sum_of(7)
  failed(value, err, "argument", "numbers: expected a table or a function")
  equal(assert(client:sum_of({}))[1], 0ULL)
end

function M.host_serves_calls_and_can_wait()
  equal(hosted:ask(4), "number 4")
  local value, err = hosted:ask(5)
  failed(value, err, "error")
  value, err = hosted:tell({ "a" })
  failed(value, err, "error")
  equal(err.payload, 5) -- guest_panicked
  local threads = {}
  for i = 1, 50 do
    threads[i] = ngx.thread.spawn(function() return hosted:ask_later(2 * i) end)
  end
  for i = 1, 50 do
    local _, text = ngx.thread.wait(threads[i])
    equal(text, "number " .. 2 * i)
  end
end

function M.caller_that_waits_a_moment_leaves_host_calls_to_another_light_thread()
  local port = hosted._port
  local before = port.moment
  port.moment = 50000
  for i = 1, 100 do
    equal(hosted:ask(2 * i), "number " .. 2 * i)
  end
  port.moment = before
end

function M.client_without_host_answers_closed()
  local value, err = client:ask(4)
  failed(value, err, "error")
  equal(err.payload, 8) -- closed
  value, err = conformance.open(libraries.conformance, { host = 7 })
  failed(value, err, "argument", "host: expected a table")
end

return M
