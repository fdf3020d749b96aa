--- Cancels the calls and closes the streams of a request whose client has gone. nginx reports that
-- if `lua_check_client_abort` is on, to one function for each request.
local can_abort = { access = true, content = true, rewrite = true }

local M = {}

--- Cancels all calls of this request, and closes its streams.
function M.cancel_request()
  for one in pairs(ngx.ctx.thalweg or {}) do
    one:cancel()
  end
end

local function on_abort()
  M.cancel_request()
  ngx.exit(499)
end

--- Adds a call or stream of this request: an object with `cancel`. Returns the set with it, or nil
-- if there is no request.
function M.watch(one)
  if not can_abort[ngx.get_phase()] then return nil end
  local ctx = ngx.ctx
  local watched = ctx.thalweg
  if watched == nil then
    watched = setmetatable({}, { __mode = "k" })
    ctx.thalweg = watched
    -- Without effect if the directive is off, or if the program has set its own function.
    ngx.on_abort(on_abort)
  end
  watched[one] = true
  return watched
end

return M
