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

--- Returns nil and an error in the phase init, in which `what` cannot open a library.
function M.check_forked(what)
  if get_phase() ~= "init" then return true end
  return nil, errors.argument(what .. ": a library cannot be opened in the phase init: its threads"
    .. " would stay in the master process, and workers would not have them;"
    .. " open it in init_worker_by_lua_block")
end

return M
