--- The locations of the gateway. Each worker opens the services once, in `open`.
local thalweg = require "thalweg"

local M = {}
local search, echo

--- A search ends after this time, in seconds.
local SEARCH_TIMEOUT = 30

--- The status for the code of an error. Others are 502: the service has failed.
local STATUS = {
  argument = 400, error = 400, cancelled = 499, overloaded = 503, shut_down = 503, timed_out = 504,
}

--- Opens both services, whose libraries are in `folder`.
function M.open(folder)
  search = assert(require("search").open(folder .. "/libthalweg_search.so"))
  echo = assert(require("echo").open(folder .. "/libthalweg_echo.so"))
end

--- Ends a request with a status and one line of text.
local function refuse(status, text)
  ngx.status = status
  ngx.header["Content-Type"] = "text/plain"
  ngx.say(text)
  return ngx.exit(ngx.OK)
end

--- Ends a request whose call has failed.
local function fail(err)
  local payload = err.payload
  if err.retryable then
    ngx.header["Retry-After"] = 1
  end
  return refuse(STATUS[err.code] or 502, payload and tostring(payload.value or payload.tag) or tostring(err))
end

--- Ends a request unless it has this method.
local function expect_method(name)
  if ngx.req.get_method() ~= name then
    ngx.header["Allow"] = name
    return refuse(405, "expected " .. name)
  end
end

--- The query of a request to /search.
local function options_of(arguments)
  local globs = arguments.glob or {}
  return {
    fixed = arguments.fixed ~= nil,
    ignore_case = arguments.ignore_case ~= nil,
    hidden = arguments.hidden ~= nil,
    ignore_files = true,
    globs = type(globs) == "table" and globs or { globs },
  }
end

local function line_of(match)
  return ("%s:%d:%d:%s\n"):format(match.path_bytes or match.path, tonumber(match.line), tonumber(match.column),
    match.text_bytes or match.text)
end

--- Sends the matches. It sends all that have arrived before it waits for more, and a slow client makes
-- the search wait. Returns nil and an error if the stream or the client has ended early.
local function send(matches)
  local lines = {}
  for match in matches do
    lines[#lines + 1] = line_of(match)
    if matches:buffered() == 0 then
      local ok, why = ngx.print(lines)
      if ok then
        ok, why = ngx.flush(true)
      end
      if not ok then return nil, why end
      lines = {}
    end
  end
  return matches.err == nil, matches.err
end

function M.search()
  expect_method("GET")
  local arguments = ngx.req.get_uri_args()
  local pattern = arguments.pattern
  if type(pattern) ~= "string" then
    return refuse(400, "expected one parameter pattern=REGEX")
  end
  local query, err = search:query(pattern, os.getenv("GATEWAY_DIR"), options_of(arguments))
  if not query then return fail(err) end
  local matches
  matches, err = search:matches(query, { timeout = SEARCH_TIMEOUT })
  if not matches then return fail(err) end
  ngx.header["Content-Type"] = "text/plain; charset=utf-8"
  local ok, why = send(matches)
  matches:close()
  query:close()
  if not ok then
    ngx.log(ngx.WARN, "the search has ended early: ", tostring(why))
    -- Closes the connection before the end of the response, so that the client notices.
    return ngx.exit(ngx.ERROR)
  end
end

function M.echo()
  expect_method("POST")
  ngx.req.read_body()
  local timer = assert(echo:timer("gateway"))
  local delay_ms = tonumber(ngx.var.arg_delay_ms or 0)
  local response, err = timer:echo { message = ngx.req.get_body_data() or "", delay_ms = delay_ms }
  timer:close()
  if not response then return fail(err) end
  ngx.header["Content-Type"] = "text/plain; charset=utf-8"
  ngx.print(response.message)
end

function M.metrics()
  ngx.header["Content-Type"] = "text/plain; version=0.0.4"
  ngx.print(thalweg.metrics())
end

return M
