--- Checks for the tests that run inside of nginx. A request calls one function of a table of tests.
local M = {}

--- The two values are the same.
function M.equal(left, right, what)
  if left ~= right then
    error((what or "values") .. ": " .. tostring(left) .. " is not " .. tostring(right), 2)
  end
end

--- A call has failed with this code, and a message that contains the text.
function M.failed(value, err, code, text)
  if value ~= nil or err == nil then
    error("it has not failed, and returned " .. tostring(value), 2)
  elseif err.code ~= code then
    error(tostring(err) .. ", not " .. code, 2)
  elseif text and not err.message:find(text, 1, true) then
    error(("%q has no %q"):format(err.message, text), 2)
  end
end

--- Waits until a function returns true.
function M.eventually(is_true, what)
  for _ = 1, 2000 do
    if is_true() then
      return
    end
    collectgarbage()
    ngx.sleep(0.01)
  end
  error(what .. " does not happen", 2)
end

--- Runs the test that is the argument `name` of the request.
function M.run(tests)
  local test = tests[ngx.var.arg_name]
  local ok, why = xpcall(test, function(raised) return debug.traceback(tostring(raised)) end)
  ngx.print(ok and "ok" or why)
end

return M
