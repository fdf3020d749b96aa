--- A parker: a semaphore of nginx on which one caller waits. Its time-outs are not used, because the
-- core ends calls at their deadlines.
local errors = require "thalweg.errors"
local semaphore = require "ngx.semaphore"

--- The longest wait of a semaphore, in seconds.
local LONG = 1000000

local M = {}

function M.new()
  return {
    semaphore = assert(semaphore.new(0)),
    --- It was posted, and its caller has not continued yet.
    is_posted = false,
    --- Its caller runs code of the program, which can wait for something else.
    is_busy = false,
  }
end

--- Waits until the parker is posted. Returns nil and an error if this phase cannot wait.
function M.park(parker)
  local ok, why = parker.semaphore:wait(LONG)
  if not ok then
    if why == "timeout" then return M.park(parker) end
    return nil, errors.new("would_park", why)
  end
  parker.is_posted = false
  return true
end

--- Wakes the caller.
function M.post(parker)
  if not parker.is_posted then
    parker.is_posted = true
    parker.semaphore:post(1)
  end
end

--- Not a closure in `turn`: its variables are gone when nginx has ended the caller.
local function post_later(_, parker)
  M.post(parker)
end

--- Lets other events of the worker run before the caller continues. Without a patch of nginx,
-- `ngx.sleep(0)` does that only with a warning in the log.
function M.turn(parker)
  if ngx.timer.at(0, post_later, parker) then
    M.park(parker)
  end
end

--- Whether a parker still has a caller: one that continues soon, runs code of the program, or waits.
-- nginx removes a caller that it ends from the semaphore.
function M.has_caller(parker)
  return parker.is_posted or parker.is_busy or parker.semaphore:count() < 0
end

return M
