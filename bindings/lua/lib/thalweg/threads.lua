--- Light threads that run functions of hosts. A thread waits for the next function when it has run
-- one: nginx frees a light thread only at the end of its timer, so that none ends before that.
local parkers = require "thalweg.parker"

local Threads = {}
Threads.__index = Threads

local M = {}

function M.new()
  return setmetatable({ idle = {}, is_stopped = false }, Threads)
end

local function run(self, job)
  local mine = { parker = parkers.new(), job = job }
  repeat
    mine.job()
    mine.job = nil
    if not self.is_stopped then
      self.idle[#self.idle + 1] = mine
      parkers.park(mine.parker)
    end
  until mine.job == nil
end

--- Runs a function, which does not raise an error, until it first waits. Call it in the dispatcher.
function Threads:run(job)
  local count = #self.idle
  if count == 0 then
    self.is_stopped = false
    ngx.thread.spawn(run, self, job)
    return
  end
  local one = self.idle[count]
  self.idle[count] = nil
  one.job = job
  parkers.post(one.parker)
end

--- Ends the threads: each one when its function returns.
function Threads:stop()
  self.is_stopped = true
  for _, one in ipairs(self.idle) do
    parkers.post(one.parker)
  end
  self.idle = {}
end

return M
