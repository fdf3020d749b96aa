--- Errors. A call returns `nil, err`, and `err` has these fields:
--
--   code       the outcome, such as "timed_out": a name of tw_code in lower case
--   message    a text
--   retryable  true: the same call may succeed later, and repeating it does no harm
--   payload    the service's own error, if `code` is "error"
local ffi = require "ffi"

local NAMES = {
  [0] = "ok", "error", "cancelled", "timed_out", "guest_lost", "guest_panicked", "overloaded",
  "shut_down", "closed", "stale", "argument", "version", "forked", "interrupted", "would_park",
}

---@class thalweg.Error
---@field code string
---@field message string
---@field retryable boolean
---@field payload any
local Error = {}
Error.__index = Error

function Error:__tostring()
  return self.code .. ": " .. self.message
end

--- A text with an error: `"failed: " .. err`.
function Error.__concat(left, right)
  return tostring(left) .. tostring(right)
end

local M = {}

--- The name of a number of `tw_code`.
function M.name(code)
  return NAMES[code] or "unknown"
end

--- Creates an error. `code` is a name.
function M.new(code, message, retryable, payload)
  if message == nil or message == "" then
    message = (code:gsub("_", " "))
  end
  return setmetatable(
    { code = code, message = message, retryable = retryable or false, payload = payload }, Error)
end

--- The error in a `tw_error`.
function M.from(failure)
  return M.new(M.name(failure.code), ffi.string(failure.message), failure.retryable ~= 0)
end

--- The error of a completion that has no payload.
function M.of_completion(completion)
  local text = ""
  if completion.message ~= nil then
    text = ffi.string(completion.message, completion.message_size)
  end
  return M.new(M.name(completion.code), text, completion.retryable ~= 0)
end

--- A short text for a payload: a text, or the name of its case.
local function text_of(payload)
  if type(payload) == "table" and payload.tag then
    local value = payload.value
    return (value == nil or type(value) == "table") and payload.tag or payload.tag .. ": " .. tostring(value)
  end
  return type(payload) ~= "table" and payload ~= nil and tostring(payload) or ""
end

--- The service's own error.
function M.service(payload, is_retryable)
  return M.new("error", text_of(payload), is_retryable, payload)
end

function M.argument(message)
  return M.new("argument", message)
end

function M.is(value)
  return getmetatable(value) == Error
end

--- The error for something that Lua code raised: an error of this package, or a text.
function M.wrap(raised, what)
  if M.is(raised) then return raised end
  local text = tostring(raised)
  if text == "not enough memory" then
    return M.new("overloaded", what .. ": not enough memory", true)
  end
  return M.argument(what .. ": " .. text:gsub("^[^\n]-:%d+: ", ""))
end

return M
