--- The conformance runner in Lua, which runs inside of nginx. conformance/README.md describes the steps.
local cjson = require "cjson"
local conformance = require "conformance"
local ffi = require "ffi"
local message = require "thalweg.message"
local settings = require "settings"
local thalweg = require "thalweg"
local values = require "values"
local writer = require "thalweg.writer"

local same, snake, value = values.same, values.snake, values.value

--- The reasons of gaps by their number in thalweg.h.
local GAPS = { "conflated", "dropped-newest", "dropped-oldest", "batch-open", "service" }

--- The functions by their name without the interface, with their types.
local methods = {}
for number = 0, conformance.package.method_count - 1 do
  local known = conformance.package.methods[number]
  local params, ok, failure, element = unpack(known.types)
  methods[known.name:match("%.(.*)")] = {
    known = known,
    params = values.parse(params),
    ok = values.parse(ok),
    error = values.parse(failure),
    element = values.parse(element),
  }
end

--- The host of every client.
local oracle = {
  look_up = function(key)
    if key == 101 then
      error("at 101, on purpose")
    elseif key % 2 == 1 then
      return nil, key
    end
    return "number " .. tostring(key):match("%d+")
  end,
  tell = function(words, at)
    return #table.concat(words) + (at or 0)
  end,
  nod = function() end,
}

local function open()
  return assert(conformance.open(settings.library, { host = oracle }))
end

-- The messages of calls, which the package hides.

local watched, forged

local finish = getmetatable(writer.new()).__index.finish
getmetatable(writer.new()).__index.finish = function(self)
  finish(self)
  if forged then
    self.size = #forged
    if self.capacity < #forged then self:resize(#forged) end
    ffi.copy(self.data, forged, #forged)
    forged = nil
  end
  if watched and not watched.written then
    watched.written = values.hex_of(ffi.string(self.data, self.size))
  end
end

local open_message = getmetatable(message.new()).__index.open
getmetatable(message.new()).__index.open = function(self, data, length, ...)
  if watched and not watched.read and data ~= nil then
    watched.read = values.hex_of(ffi.string(data, length))
    watched = nil
  end
  return open_message(self, data, length, ...)
end

-- Checks

local function check(is_right, ...)
  if not is_right then
    local parts = { ... }
    for i = 1, select("#", ...) do parts[i] = tostring(parts[i]) end
    error(table.concat(parts), 0)
  end
end

local function contains(list, name)
  for _, one in ipairs(list) do
    if one == name then return true end
  end
  return false
end

--- Checks how a call or a stream ended. `type_of` is that of the service's own error.
local function check_ending(expected, err, type_of)
  local names = expected.ends or (expected.error ~= nil and "error") or "ok"
  names = type(names) == "table" and names or { names }
  local name = err and err.code or "ok"
  check(contains(names, name), "it ended as ", err or "ok", ", not as ", table.concat(names, ", "))
  if err then
    check(err.message:find(expected.message or "", 1, true), "another message: ", err)
    if expected.error ~= nil then
      check(same(values.opened(err.payload), value(type_of, expected.error)), "another error: ", err)
    end
  end
end

--- Checks the elements of a stream. `gap` is its `gap_reason`.
local function check_elements(expected, seen, element)
  local list, count = { kind = "stream", parts = { element } }, #seen.elements
  local function are(elements, wanted)
    return same(elements, value(list, wanted))
  end
  check(not expected.elements or are(seen.elements, expected.elements), "other elements")
  check(not expected.controls or are(seen.controls, expected.controls), "other control records")
  check(expected.first == nil or are({ seen.elements[1] }, { expected.first }), "another first")
  check(expected.last == nil or are({ seen.elements[count] }, { expected.last }), "another last")
  check(count == (expected.count or count), count, " elements")
  check(not expected.total or count + seen.lost == expected.total, count, " elements, ", seen.lost, " lost")
  check(not expected.gap or seen.gap == GAPS[expected.gap], "lost as ", seen.gap)
end

-- Scenarios: the two clients of each one, and what its steps have stored.

local Scenario = {}
Scenario.__index = Scenario

function Scenario:run(steps)
  for _, step in ipairs(steps) do
    self:step(step)
  end
end

function Scenario:take(name)
  local one = self.kept[name]
  self.kept[name] = nil
  return one
end

function Scenario:step(step)
  if step.drop then
    self:take(step.drop):close()
  elseif step.close then
    self.client:close()
  elseif step.open then
    self.client:close()
    self.client = open()
  elseif step.other then
    self.client, self.other = self.other or open(), self.client
  elseif step["repeat"] then
    for _ = 1, step["repeat"] do
      self:run(step.steps)
    end
  elseif step.start then
    self.started[step.start] = self.started[step.start] or {}
    for _ = 1, step.times or 1 do
      local thread = ngx.thread.spawn(function() return self:begin(step) end)
      table.insert(self.started[step.start], { step = step, thread = thread })
    end
  elseif step.await then
    for _, began in ipairs(self.started[step.await]) do
      local _, result, err = ngx.thread.wait(began.thread)
      self:finish(began.step, result, err)
    end
    self.started[step.await] = nil
  elseif step.call then
    self:call_within(step)
  else
    self:stream(step)
  end
end

--- Makes the call, again and again if it has `within_ms`. The objects that it leaves become garbage.
function Scenario:call_within(step)
  ngx.update_time()
  local stop = ngx.now() + (step.within_ms or 0) / 1000
  while true do
    local ok, why = pcall(self.call, self, step)
    if ok then
      return
    end
    ngx.update_time()
    if ngx.now() >= stop then
      error(why, 0)
    end
    collectgarbage()
    ngx.sleep(0.01)
  end
end

function Scenario:call(step)
  local messages
  if step.arguments or step.reply then
    messages = {}
    watched = messages
  end
  local result, err = self:begin(step)
  watched = nil
  if step.arguments and not (err and err.code == "closed") then
    check(messages.written == step.arguments, "other arguments: ", messages.written)
  end
  if step.reply and messages.read then
    check(messages.read == step.reply, "another reply: ", messages.read)
  end
  self:finish(step, result, err)
end

--- Calls the function of the client or resource.
function Scenario:begin(step)
  local kind, path = step.call:match("^%[(%w+)%](.*)$")
  path = path or step.call
  local of, name, first = self.client, snake((path:gsub("%.", "-"))), 1
  if kind == "method" or kind == "destructor" then
    of = self.kept[step.params[1].resource]
    name = kind == "method" and snake(path:match("%.(.*)")) or "destroy"
    first = 2
  end
  local fields = methods[step.call].params.fields
  local arguments = {}
  for i = first, #fields do
    arguments[i - first + 1] = values.argument(fields[i].type, step.params[i], self.kept)
  end
  local count = #fields - first + 2
  arguments[count] = self.options(step)
  return of[name](of, unpack(arguments, 1, count))
end

function Scenario.options(step)
  local token = thalweg.cancel_token()
  local options = { cancel = token, timeout = step.timeout_ms and step.timeout_ms / 1000 }
  if step.cancel_after_ms then
    ngx.timer.at(step.cancel_after_ms / 1000, function() token:cancel() end)
  end
  local left = step.cancel_after_notices
  if left then
    options.on_notice = function()
      left = left - 1
      if left == 0 then token:cancel() end
    end
  end
  return options
end

--- Checks the outcome of a call.
function Scenario:finish(step, result, err)
  local method, expected = methods[step.call], step.stream
  if expected and method.ok.kind == "future" then
    local seen = { elements = err and {} or { result }, controls = {}, lost = 0 }
    check_elements(expected, seen, method.ok.parts[1])
    check_ending(expected, err, method.error)
  elseif expected and not err then
    self.read(result, expected, method.ok.parts[1], method.error)
  else
    check_ending(expected or step, err, method.error)
    if step.bind then
      self.kept[step.bind] = result
    end
    if step.ok ~= nil and method.ok.kind ~= "_" then
      check(same(values.opened(result), value(method.ok, step.ok)), "another result: ", result)
    end
  end
end

--- Reads a stream and checks it.
function Scenario.read(stream, expected, element, failure)
  local elements, controls = {}, {}
  for one in stream do
    local list = stream.control and controls or elements
    list[#list + 1] = one
    if #elements == expected.take then
      stream:close()
      break
    end
  end
  check_ending(expected, stream.err, failure)
  local seen = { elements = elements, controls = controls, lost = stream.lost, gap = stream.gap_reason }
  check_elements(expected, seen, element)
end

--- A step about a stored stream of numbers. There are no callbacks: records are read later.
function Scenario:stream(step)
  if step.read then
    self.read(self:take(step.read), step.stream, { kind = "u64" })
  elseif step.tee then
    self.kept[step.bind] = assert(self.kept[step.tee]:tee())
  elseif step.stats then
    local stats = assert(self.kept[step.stats]:stats())
    local lost = 0
    for _, count in pairs(stats.lost) do lost = lost + count end
    stats.lost = lost
    for key, wanted in pairs(step) do
      check(key == "stats" or stats[key] == tonumber(wanted), key, ": ", stats[key])
    end
  else
    check(step.subscribe, "an unknown step")
  end
end

--- Runs a scenario. Returns its verdict, and the reason of a failure.
local function verdict_of(steps)
  local scenario = setmetatable({ kept = {}, started = {} }, Scenario)
  scenario.client = open()
  local ok, why = xpcall(function() scenario:run(steps) end, function(raised)
    return type(raised) == "string" and raised or tostring(raised)
  end)
  scenario.client:close()
  if scenario.other then scenario.other:close() end
  return ok and "ok" or "failed", why
end

--- 1022001 is 1.22.1.
local function nginx_version(number)
  return ("%d.%d.%d"):format(number / 1000000, number / 1000 % 1000, number % 1000)
end

local M = {}

local function parsed(path)
  local file = assert(io.open(path))
  local text = file:read("*a")
  file:close()
  return cjson.decode(text)
end

--- Runs all scenarios, and writes a line for each one: `VERDICT NAME`, and the reason of a failure.
function M.scenarios()
  for _, scenario in ipairs(parsed(settings.scenarios)) do
    local verdict, why = verdict_of(scenario.steps)
    ngx.say(verdict, " ", scenario.name, why and "\n  " .. why:gsub("\n", " ") or "")
    ngx.flush()
  end
end

--- The versions of nginx and of its Lua module.
function M.version()
  ngx.print("nginx ", nginx_version(ngx.config.nginx_version), ", ngx_lua ", nginx_version(ngx.config.ngx_lua_version))
end

--- Sends malformed messages, cut at every byte and with each byte changed.
function M.hostile()
  local client = open()
  local sent = 0
  local function send(name, bytes, ends)
    sent = sent + 1
    forged = bytes
    local known = methods[name].known
    local put = known.put
    known.put = nil
    local _, err = require("thalweg.call")(client, known, nil)
    known.put = put
    local code = err and err.code or "ok"
    check(contains(ends, code), name, " of ", values.hex_of(bytes), ": ", err or "ok")
  end
  for _, one in ipairs(parsed(settings.hostile)) do
    local bytes = values.bytes_of(one.arguments)
    send(one.call, bytes, { one.ends })
    for at = 1, one.damage and #bytes or 0 do
      send(one.call, bytes:sub(1, at - 1), { "argument" })
      for _, other in ipairs { 0x00, 0x01, 0x7f, 0x80, 0xc0, 0xff } do
        local changed = bytes:sub(1, at - 1) .. string.char(other) .. bytes:sub(at + 1)
        send(one.call, changed, { "ok", "error", "argument" })
      end
    end
  end
  client:close()
  ngx.say("ok ", sent, " malformed messages were refused or answered")
end

return M
