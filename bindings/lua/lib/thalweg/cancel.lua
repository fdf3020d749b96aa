--- Tokens that cancel calls: the option `cancel` of a call.
local Token = {}
Token.__index = Token

local M = {}

function M.new()
  return setmetatable({ is_cancelled = false, calls = setmetatable({}, { __mode = "k" }) }, Token)
end

function M.is(value)
  return getmetatable(value) == Token
end

--- Cancels the calls that use the token, also those that begin later.
function Token:cancel()
  self.is_cancelled = true
  for entry in pairs(self.calls) do
    entry:cancel()
  end
end

return M
