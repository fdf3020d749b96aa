--- Chooses how ports wake the event loop of this worker: mode B if its module is there and fits this
-- nginx, and otherwise mode A.
local wake_event = require "thalweg.wake_event"
local wake_socket = require "thalweg.wake_socket"

local M = {}
local chosen

function M.choose()
  if not chosen then
    local is_there, why = wake_event.find()
    chosen = is_there and wake_event or wake_socket
    local level = why and ngx.WARN or ngx.INFO
    ngx.log(level, "thalweg: mode ", chosen.mode, why and ": " .. why or "")
  end
  return chosen
end

return M
