--- The phases of nginx in which Lua code can wait.
local errors = require "thalweg.errors"

local get_phase = ngx.get_phase

local CAN_WAIT = {
  access = true,
  content = true,
  rewrite = true,
  server_rewrite = true,
  ssl_cert = true,
  ssl_client_hello = true,
  ssl_session_fetch = true,
  timer = true,
}

local M = {}

function M.can_wait()
  return CAN_WAIT[get_phase()] ~= nil
end

--- The error for a call that would wait in this phase.
function M.refused(what)
  local phase = get_phase()
  return errors.new("would_park", what .. ": Lua code cannot wait in the phase " .. phase
    .. "; make the call in rewrite, access or content, or in a function of ngx.timer.at")
end

return M
