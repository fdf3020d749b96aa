--- `ngx.load_ffi`: libraries that were written for lua-resty-ffi, in resty_ffi/.
local check = require "check"
local ffi = require "ffi"
local resty_ffi = require "resty_ffi"

local equal = check.equal

ffi.cdef [[
void hostile_start(int threads);
void hostile_hold(int yes);
int hostile_ended(void);
int hostile_polled(void);
int hostile_kept(void);
int hostile_answer_kept(void);
]]

local echo, library
local M = {}

function M.init_worker()
  echo = assert(ngx.load_ffi("ffi_c_echo"))
  library = ffi.load("ffi_hostile")
end

--- A runtime of the hostile library. Each test has its own.
local number = 0
local function hostile(how, options)
  number = number + 1
  return assert(ngx.load_ffi("ffi_hostile", how .. (" "):rep(number), options))
end

--- A call of a runtime failed in this bridge: `false`, a text, and the error with this code.
local function refused(code, ok, text, err)
  equal(ok, false)
  if not (err and err.code == code and text == tostring(err)) then
    error(tostring(text) .. " is not " .. code, 2)
  end
end

local function spawn(count, f)
  local threads = {}
  for i = 1, count do
    threads[i] = ngx.thread.spawn(function() return { f(i) } end)
  end
  return threads
end

--- A light thread whose task the library keeps.
local function keep(demo, options)
  local before = library.hostile_kept()
  local threads = spawn(1, function() return demo:call("keep", options) end)
  check.eventually(function() return library.hostile_kept() == before + 1 end, "the task")
  return threads
end

--- The results of light threads.
local function results(threads)
  local all = {}
  for i, thread in ipairs(threads) do
    local _, values = assert(ngx.thread.wait(thread))
    all[i] = values
  end
  return all
end

--- The program of lua-resty-ffi's benchmark.
function M.echo_of_the_benchmark_answers()
  local demo = ngx.load_ffi("ffi_c_echo")
  for _, size in ipairs { 512, 4096, 10240, 102400 } do
    local buf = ("A"):rep(size)
    for _ = 1, 20 do
      local ok, res = demo:echo(buf)
      assert(ok)
      assert(res == buf)
    end
  end
end

function M.any_name_is_a_method()
  for _, name in ipairs { "echo", "call", "key", "tq", "finished", "__index", "client" } do
    local ok, answer, err = echo[name](echo, name)
    equal(ok, true)
    equal(answer, name)
    equal(err, nil)
  end
  equal(select(2, echo("called")), "called")
end

function M.bytes_are_unchanged()
  local demo = hostile("threads:1")
  local bytes = { "\0", "\0\0", "a\0b", "\255\254", ("x\0"):rep(500000) }
  for _, one in ipairs(bytes) do
    local ok, answer = demo:call("echo:" .. one)
    assert(ok and answer == one, #one)
    ok, answer = echo:echo(one)
    assert(ok and answer == one, #one)
  end
  equal(select(2, echo:echo("")), "")
end

function M.request_and_answer_can_be_nil()
  local demo = hostile("threads:1")
  equal(select(2, demo:call(nil)), "nil")
  local ok, answer, err = demo:call("nothing")
  equal(ok, true)
  equal(answer, nil)
  equal(err, nil)
end

function M.library_may_write_to_its_configuration_and_request()
  local cfg, request = "threads:1 write", "write"
  local demo = assert(ngx.load_ffi("ffi_hostile", cfg))
  equal(select(2, demo:call(request)), "wwwww")
  equal(request, "wri" .. "te")
  equal(request:byte(), ("write "):byte())
  local long = "write" .. ("x"):rep(10000) -- it is borrowed, and copied when it is polled
  equal(select(2, demo:call(long)), ("w"):rep(10005))
  equal(long, "write" .. ("x"):rep(10000))
  equal(cfg:byte(), ("t"):byte())
end

function M.answer_without_a_length_is_a_text()
  local demo = hostile("threads:1")
  equal(select(2, demo:call("text")), "a text")
  equal(select(2, demo:call("empty")), "")
  -- A text without a NUL ends with its memory.
  equal(select(2, demo:call("unterminated")), ("x"):rep(24))
end

function M.failure_has_the_code_and_the_text_of_the_library()
  local demo = hostile("threads:1")
  local ok, rc, text = demo:call("failed")
  equal(ok, false)
  equal(rc, 7)
  equal(text, "why")
  ok, rc, text = demo:call("failed-silently")
  equal(ok, false)
  equal(rc, -3)
  equal(text, nil)
end

function M.request_of_another_type_is_refused()
  refused("argument", echo:echo(7))
  refused("argument", echo:echo({}))
  equal(select(2, echo:echo("next")), "next")
end

function M.negative_length_ends_the_call()
  local demo = hostile("threads:1")
  refused("guest_lost", demo:call("negative"))
  equal(select(2, demo:call("echo:next")), "next")
end

function M.second_answer_is_ignored()
  local demo = hostile("threads:1")
  for _ = 1, 50 do
    equal(select(2, demo:call("twice")), "first")
    equal(select(2, demo:call("twice-same")), "first")
    equal(select(2, demo:call("echo:next")), "next")
  end
end

function M.pointer_that_is_no_task_is_ignored()
  equal(select(2, hostile("threads:1"):call("garbage")), "ok")
end

function M.runtime_is_loaded_once_for_each_configuration()
  local one, other = hostile("threads:1"), hostile("threads:1")
  assert(one ~= other)
  equal(ngx.load_ffi("ffi_c_echo"), echo)
  assert(ngx.load_ffi("ffi_c_echo", "") ~= echo)
  -- Not the runtime of the library `ffi_c_echo` with the configuration `b`.
  local with_b = assert(ngx.load_ffi("ffi_c_echo", "b"))
  local mixed, err = ngx.load_ffi("ffi_c_echo&b")
  equal(mixed, nil)
  equal(err.code, "argument")
  equal(with_b, ngx.load_ffi("ffi_c_echo", "b"))
end

function M.failure_of_libffi_init_is_returned()
  for _, how in ipairs { "fail", "fail-polling" } do
    local ended = library.hostile_ended()
    local runtime, rc = ngx.load_ffi("ffi_hostile", how)
    equal(runtime, nil)
    equal(rc, 5)
    if how == "fail-polling" then
      check.eventually(function() return library.hostile_ended() == ended + 1 end, "the end of the thread")
    end
  end
end

function M.library_that_is_not_one_is_refused()
  local function failed(code, ...)
    local runtime, err = ngx.load_ffi(...)
    check.failed(runtime, err, "argument", code)
  end
  failed("no_such_library", "no_such_library")
  failed("no libffi_init", "libc.so.6")
  failed("lib: expected", "")
  failed("lib: expected", nil)
  failed("lib: expected", "a\0b")
  failed("cfg: expected", "ffi_c_echo", 7)
  failed("cfg: expected", "ffi_c_echo", "a\0b")
  failed("opts: expected", "ffi_c_echo", nil, 7)
  failed("max_queue: expected", "ffi_c_echo", "q", { max_queue = 0 })
  failed("max_queue: expected", "ffi_c_echo", "q", { max_queue = "many" })
  failed("timeout: expected", "ffi_c_echo", "q", { timeout = -1 })
  equal(resty_ffi.load_ffi, ngx.load_ffi)
end

function M.full_queue_refuses_exactly_the_calls_beyond_its_bound()
  local demo = hostile("idle", { max_queue = 3 })
  local waiting = spawn(3, function(i) return demo:call("echo:" .. i) end)
  for _ = 1, 10 do
    refused("overloaded", demo:call("echo:more"))
    ngx.sleep(0.001) -- this freed the request twice in lua-resty-ffi
  end
  library.hostile_start(1)
  for i, values in ipairs(results(waiting)) do
    equal(values[1], true)
    equal(values[2], tostring(i))
  end
  equal(select(2, demo:call("echo:next")), "next")
end

function M.threads_that_poll_do_not_change_the_bound()
  local demo = hostile("threads:4", { max_queue = 2 })
  library.hostile_hold(1)
  local polled = library.hostile_polled()
  local held = spawn(4, function(i)
    -- One after the other, so that none waits in the queue.
    check.eventually(function() return library.hostile_polled() == polled + i - 1 end, "the task before")
    return demo:call("hold")
  end)
  check.eventually(function() return library.hostile_polled() == polled + 4 end, "all threads")
  local waiting = spawn(2, function() return demo:call("text") end)
  refused("overloaded", demo:call("text"))
  library.hostile_hold(0)
  for _, values in ipairs(results(held)) do
    equal(values[2], "held")
  end
  for _, values in ipairs(results(waiting)) do
    equal(values[2], "a text")
  end
end

function M.many_calls_of_many_threads_are_answered_each_once()
  local demo = hostile("threads:4")
  local all = results(spawn(50, function(i)
    for round = 1, 50 do
      local text = i .. "/" .. round
      local ok, answer = demo:call("echo:" .. text)
      if not ok or answer ~= text then return tostring(answer) .. " is not " .. text end
    end
    return "ok"
  end))
  for _, values in ipairs(all) do
    equal(values[1], "ok")
  end
end

function M.unloaded_runtime_answers_what_waits_and_ends_all_threads()
  local ended = library.hostile_ended()
  local demo = hostile("idle")
  local waiting = spawn(20, function(i) return demo:call("echo:" .. i) end)
  equal(demo:__unload(), true)
  equal(demo:__unload(), true)
  refused("closed", demo:call("text"))
  library.hostile_start(3)
  for i, values in ipairs(results(waiting)) do
    equal(values[2], tostring(i))
  end
  check.eventually(function() return library.hostile_ended() == ended + 3 end, "the end of the threads")
end

function M.runtime_is_unloaded_while_its_threads_poll()
  local ended = library.hostile_ended()
  for i = 1, 30 do
    local demo = assert(ngx.load_ffi("ffi_hostile", "threads:2", { unpin = true }))
    if i % 2 == 0 then
      equal(select(2, demo:call("text")), "a text")
    end
    demo:__unload()
    collectgarbage()
  end
  check.eventually(function() return library.hostile_ended() == ended + 60 end, "the end of the threads")
end

function M.task_that_was_polled_is_answered_after_the_unload()
  local demo = hostile("threads:1")
  local kept = keep(demo)
  demo:__unload()
  demo = nil -- luacheck: ignore 311
  collectgarbage()
  collectgarbage()
  equal(library.hostile_answer_kept(), 1)
  local values = results(kept)[1]
  equal(values[1], true)
  equal(#values[2], 2 ^ 20)
end

function M.task_that_is_not_answered_times_out()
  local demo = hostile("threads:1", { timeout = 0.02 })
  refused("timed_out", demo:call("keep"))
  -- An option of the call is used instead.
  equal(select(2, demo:call("text", { timeout = 10 })), "a text")
  refused("timed_out", demo:call("keep", { timeout = 0.001 }))
  library.hostile_answer_kept() -- of those that were polled in time
  equal(select(2, demo:call("echo:next", { timeout = 10 })), "next")
  equal(library.hostile_answer_kept(), 0)
end

function M.call_that_timed_out_in_the_queue_is_not_served()
  local demo = hostile("idle", { max_queue = 1, timeout = 0.02 })
  local polled = library.hostile_polled()
  for _ = 1, 3 do -- it does not count for the bound any more
    refused("timed_out", demo:call("text"))
    refused("timed_out", demo:call(("x"):rep(10000)))
  end
  library.hostile_start(1)
  equal(select(2, demo:call("text", { timeout = 10 })), "a text")
  equal(library.hostile_polled(), polled + 1)
end

function M.call_is_cancelled_by_its_token()
  local demo = hostile("threads:1")
  local token = require("thalweg").cancel_token()
  local kept = keep(demo, { cancel = token })
  token:cancel()
  refused("cancelled", unpack(results(kept)[1]))
  equal(library.hostile_answer_kept(), 1)
end

local function resident()
  local file = assert(io.open("/proc/self/statm"))
  local pages = tonumber(file:read("*a"):match("^%d+ (%d+)"))
  file:close()
  return pages * 4096
end

function M.late_answers_are_freed()
  local demo = hostile("threads:1")
  local before
  for round = 1, 3 do
    for _ = 1, 100 do
      local token = require("thalweg").cancel_token()
      local kept = keep(demo, { cancel = token })
      token:cancel()
      refused("cancelled", unpack(results(kept)[1]))
      equal(library.hostile_answer_kept(), 1) -- of 1 MiB
    end
    collectgarbage()
    before = before or (round == 1 and resident())
  end
  local grown = resident() - before
  assert(grown < 50 * 2 ^ 20, grown)
end

function M.calls_wait_in_timers()
  local answer
  ngx.timer.at(0, function() answer = select(2, echo:echo("timer")) end)
  check.eventually(function() return answer == "timer" end, "the answer")
end

function M.errors_can_be_appended_to_a_text()
  local _, _, err = echo:echo(7)
  assert(("failed: " .. err):find("failed: argument: ", 1, true))
  assert((err .. "!"):find("!", 1, true))
end

return M
