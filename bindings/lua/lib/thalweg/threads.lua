--- Light threads that run functions of hosts. A thread waits for the next function when it has run
-- one: nginx frees a light thread only at the end of its timer, so that none ends before that.
local parkers = require "thalweg.parker"

local Threads = {}
Threads.__index = Threads

local M = {}

function M.new()
  return setmetatable({ idle = {} }, Threads)
end

--- Runs functions until there is none after a wait, or the threads were stopped.
local function run(self, job)
  local parker = parkers.new()
  while job do
    job()
    parker.job = nil
    if not self.idle then return end
    self.idle[#self.idle + 1] = parker
    parkers.park(parker)
    job = parker.job
  end
end

--- Runs a function, which does not raise an error. `is_dispatcher`: this is the dispatcher, to which a new
-- thread can belong. Otherwise the end of the caller's request would end the thread.
function Threads:run(is_dispatcher, job)
  self.idle = self.idle or {}
  local parker = table.remove(self.idle)
  if parker then
    parker.job = job
    parkers.post(parker)
  elseif is_dispatcher or not ngx.timer.at(0, function() job() end) then
    ngx.thread.spawn(run, self, job)
  end
end

--- Ends the threads: each one when its function returns.
function Threads:stop()
  for _, parker in ipairs(self.idle or {}) do
    parkers.post(parker)
  end
  self.idle = nil
end

return M
