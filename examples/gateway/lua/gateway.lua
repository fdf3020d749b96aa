--- The locations of the gateway. Each worker opens the services once, in `open`.
local thalweg = require "thalweg"

local M = {}
local search
--- The clients of the echo by language, or the errors of those that cannot be opened; and the languages in order.
local echoes, errors, languages = {}, {}, {}

--- A search or an echo ends after this time, in seconds.
local TIMEOUT = 30

--- The status for the code of an error. Others are 502: the service has failed.
local STATUS = {
  argument = 400, error = 400, cancelled = 499, overloaded = 503, shut_down = 503, timed_out = 504,
}

--- Opens the search, whose library is at `path`, and the echo of each language. `addresses` has the path of a
-- library in Rust, or the address of a guest in another language. If one of them cannot be opened, the others
-- are served.
function M.open(path, addresses)
  search = assert(require("search").open(path))
  for language, address in pairs(addresses) do
    languages[#languages + 1] = language
    echoes[language], errors[language] = require("echo").open(address)
    if errors[language] then
      ngx.log(ngx.ERR, "there is no echo in ", language, ": ", tostring(errors[language]))
    end
  end
  table.sort(languages)
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

--- Sends a line for each record. It sends all that have arrived before it waits for more, and a slow client
-- makes the service wait. Returns nil and an error if the stream or the client has ended early.
local function send_all(stream, line)
  local lines = {}
  for record in stream do
    lines[#lines + 1] = line(record)
    if stream:buffered() == 0 then
      local ok, why = ngx.print(lines)
      if ok then
        ok, why = ngx.flush(true)
      end
      if not ok then return nil, why end
      lines = {}
    end
  end
  return stream.err == nil, stream.err
end

--- Answers a request with the records of a stream, and closes it.
local function send(stream, line)
  ngx.header["Content-Type"] = "text/plain; charset=utf-8"
  local ok, why = send_all(stream, line)
  stream:close()
  if not ok then
    ngx.log(ngx.WARN, "the stream has ended early: ", tostring(why))
    -- Closes the connection before the end of the response, so that the client notices.
    return ngx.exit(ngx.ERROR)
  end
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
  matches, err = search:matches(query, { timeout = TIMEOUT })
  query:close()
  if not matches then return fail(err) end
  return send(matches, line_of)
end

--- A timer of the echo in the language of the path.
local function new_timer()
  local language = ngx.var.language
  local client, err = echoes[language], errors[language]
  if err then return refuse(502, tostring(err)) end
  if not client then
    return refuse(404, ("no echo in `%s`; there is %s"):format(language, table.concat(languages, ", ")))
  end
  local timer
  timer, err = client:timer("gateway")
  return timer or fail(err)
end

function M.echo()
  expect_method("POST")
  ngx.req.read_body()
  local timer = new_timer()
  local delay_ms = tonumber(ngx.var.arg_delay_ms or 0)
  local response, err = timer:echo({ message = ngx.req.get_body_data() or "", delay_ms = delay_ms },
    { timeout = TIMEOUT })
  timer:close()
  if not response then return fail(err) end
  ngx.header["Content-Type"] = "text/plain; charset=utf-8"
  ngx.print(response.message)
end

function M.ticks()
  expect_method("GET")
  local timer = new_timer()
  local ticks, err = timer:schedule(tonumber(ngx.var.arg_every_ms or 100), tonumber(ngx.var.arg_times or 0))
  timer:close()
  if not ticks then return fail(err) end
  return send(ticks, function(tick)
    return ("tick %d, %d us late\n"):format(tick.number, tonumber(tick.late_ns) / 1000)
  end)
end

function M.languages()
  expect_method("GET")
  ngx.header["Content-Type"] = "text/plain"
  for _, language in ipairs(languages) do
    local client, err = echoes[language], errors[language]
    local version
    if client then
      version, err = client:version()
    end
    ngx.say(language, " ", version or tostring(err))
  end
end

function M.metrics()
  ngx.header["Content-Type"] = "text/plain; version=0.0.4"
  ngx.print(thalweg.metrics())
end

return M
