--- The benchmark `echo_nginx`: echoes of a service inside of nginx, and of a server on a Unix socket. It runs inside of
-- the nginx that `src/nginx.rs` starts.
--
--   /benchmark?times=100000&arr=512,4096,10240,102400
--
-- | argument | meaning |
-- | --- | --- |
-- | `times` | calls of each kind and length, in all connections together |
-- | `arr` | the lengths of the messages in bytes |
-- | `concurrency` | light threads that call at the same time, each with its own connection to the server |
-- | `ways` | a list: `ffi`, calls of the service in Rust; `guest_c`, in C; `guest_go`, in Go; `load_ffi` and
--            `load_ffi_go`, of a library for lua-resty-ffi in C and Go; `uds`, the Unix socket |
--
-- Only the ways whose libraries were opened are there.
--
-- The answer has a line with the seconds for each of them: `ffi: 0.412345`. Each reply is compared with its request.
local ffi = require "ffi"
local bit = require "bit"
local lab = require "lab"
local waker = require "thalweg.waker"

local band, rshift, byte, string_of = bit.band, bit.rshift, string.byte, ffi.string

ffi.cdef [[
typedef struct lab_time { long seconds, nanoseconds; } lab_time;
int lab_clock_gettime(int clock, lab_time *time) __asm__("clock_gettime");
]]

local CLOCK_MONOTONIC = 1
local time = ffi.new("lab_time")

--- The default lengths, and the largest values.
local LENGTHS = "16,128,1024,10240,102400"
local TIMES = 100000
local MAX_TIMES = 10000000
local MAX_LENGTH = 16777216
local MAX_LENGTHS = 32
local MAX_CONCURRENCY = 1000

local M = {}

--- Each way opens one end for a light thread, makes calls with it, and closes it.
local ways = {}

local socket_path

--- Calls of a service.
local function calls_of(service)
  return {
    open = function() return service end,
    close = function() end,
    run = function(client, message, times)
      for _ = 1, times do
        local reply = assert(client:echo(message))
        assert(reply == message, "another reply")
      end
    end,
  }
end

--- Calls of a library for lua-resty-ffi.
local function calls_of_runtime(runtime)
  return {
    open = function() return runtime end,
    close = function() end,
    run = function(library, message, times)
      for _ = 1, times do
        local ok, reply = library:echo(message)
        assert(ok, reply)
        assert(reply == message, "another reply")
      end
    end,
  }
end

--- A message to the server is its length in four bytes, most significant first, and its bytes.
local function call_socket(socket, message, times)
  local length = #message
  local header, parts = ffi.new("uint8_t[4]"), {}
  for _ = 1, times do
    for i = 0, 3 do
      header[i] = band(rshift(length, 24 - 8 * i), 255)
    end
    parts[1], parts[2] = string_of(header, 4), message
    local sent = assert(socket:send(parts))
    assert(sent == length + 4, "another number of bytes was sent")
    local a, b, c, d = byte(assert(socket:receive(4)), 1, 4)
    local coming = ((a * 256 + b) * 256 + c) * 256 + d
    assert(coming == length, "another length")
    local reply = assert(socket:receive(coming))
    assert(reply == message, "another reply")
  end
end

ways.uds = {
  open = function()
    local socket = ngx.socket.tcp()
    assert(socket:connect("unix:" .. socket_path))
    return socket
  end,
  --- The connection stays open for the next measurement.
  close = function(socket) assert(socket:setkeepalive(60000, MAX_CONCURRENCY)) end,
  run = call_socket,
}

--- Opens the libraries of the ways. `services` has the path or address of the service in each language, and
-- `runtimes` the paths of libraries for lua-resty-ffi, by the name of the way. `socket` is the path of the server's
-- socket, and `spin` that option of the services.
function M.start(options)
  for name, address in pairs(options.services) do
    ways[name] = calls_of(assert(lab.open(address, { spin = options.spin })))
  end
  for name, path in pairs(options.runtimes) do
    require "resty_ffi"
    ways[name] = calls_of_runtime(assert(ngx.load_ffi(path)))
  end
  socket_path = options.socket
end

local function now()
  assert(ffi.C.lab_clock_gettime(CLOCK_MONOTONIC, time) == 0)
  return tonumber(time.seconds) + tonumber(time.nanoseconds) / 1e9
end

local function run_all(way, ends, message, times)
  if #ends == 1 then return way.run(ends[1], message, times) end
  local threads = {}
  for i, one in ipairs(ends) do
    local share = math.floor(times * i / #ends) - math.floor(times * (i - 1) / #ends)
    threads[i] = ngx.thread.spawn(way.run, one, message, share)
  end
  for _, thread in ipairs(threads) do
    local ok, why = ngx.thread.wait(thread)
    assert(ok, why)
  end
end

--- The seconds for `times` calls. Opening and closing is not part of them.
local function measure(way, message, times, concurrency)
  local ends = {}
  for i = 1, concurrency do
    ends[i] = way.open()
  end
  local began = now()
  run_all(way, ends, message, times)
  local seconds = now() - began
  for _, one in ipairs(ends) do
    way.close(one)
  end
  return seconds
end

--- A whole number from 1 to `most`, or nil and a text.
local function number(name, text, most)
  local value = text:match("^%d+$") and tonumber(text)
  if value and value >= 1 and value <= most then return value end
  return nil, ("%s: expected a whole number from 1 to %d, got `%s`"):format(name, most, text)
end

--- The words of a list with commas.
local function words(text)
  local all = {}
  for word in (text .. ","):gmatch("(.-),") do
    all[#all + 1] = word
  end
  return all
end

local function lengths_of(text)
  local lengths = words(text)
  if #lengths > MAX_LENGTHS then
    return nil, ("arr: expected at most %d lengths, got %d"):format(MAX_LENGTHS, #lengths)
  end
  for i, word in ipairs(lengths) do
    local length, why = number("arr", word, MAX_LENGTH)
    if not length then return nil, why end
    lengths[i] = length
  end
  return lengths
end

local function ways_of(text)
  local names = words(text)
  for _, name in ipairs(names) do
    if not ways[name] then return nil, ("ways: there is no way `%s` here"):format(name) end
  end
  return names
end

--- How to read each argument, with its default.
local ARGUMENTS = {
  times = { TIMES, function(text) return number("times", text, MAX_TIMES) end },
  arr = { LENGTHS, lengths_of },
  concurrency = { 1, function(text) return number("concurrency", text, MAX_CONCURRENCY) end },
  ways = { "ffi,uds", ways_of },
}

--- The arguments of the request, or nil and a text.
local function arguments()
  local given, values = ngx.req.get_uri_args(), {}
  for name, value in pairs(given) do
    if not ARGUMENTS[name] then
      return nil, ("there is no argument `%s`; there is times, arr, concurrency and ways"):format(name)
    elseif type(value) ~= "string" then
      return nil, name .. ": expected one value"
    end
  end
  for name, argument in pairs(ARGUMENTS) do
    local value, why = argument[2](given[name] or tostring(argument[1]))
    if not value then return nil, why end
    values[name] = value
  end
  return values
end

local function say(...)
  ngx.say(...)
  ngx.flush(true)
end

local function measure_all(asked)
  say("times=", asked.times, " concurrency=", asked.concurrency, " mode=", waker.choose().mode)
  for _, length in ipairs(asked.arr) do
    say("-- length=", length)
    local message = ("A"):rep(length)
    for _, name in ipairs(asked.ways) do
      say(name, (": %.6f"):format(measure(ways[name], message, asked.times, asked.concurrency)))
    end
  end
end

--- Answers `/benchmark`.
function M.page()
  ngx.header.content_type = "text/plain"
  local asked, why = arguments()
  if not asked then
    ngx.status = 400
    return ngx.say(why)
  end
  local ok, failure = pcall(measure_all, asked)
  if not ok then
    say("failed: ", tostring(failure))
  end
end

return M
