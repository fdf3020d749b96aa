--- The counters of this worker's libraries, in the text format of Prometheus.
local ffi = require "ffi"
local ports = require "thalweg.port"

local NAMES = require("thalweg.abi").counters_of("tw_counters")
local ESCAPES = { ["\\"] = "\\\\", ['"'] = '\\"', ["\n"] = "\\n" }

local M = {}

--- The text. docs/lua.md lists the counters.
function M.text()
  local counters = ffi.new("tw_counters")
  local lines = {}
  for _, port in ipairs(ports.all) do
    -- A package may be served by several libraries.
    local labels = ('{package="%s",library="%s",worker="%d"}'):format(ffi.string(port.table.package),
      port.path:gsub('[\\"\n]', ESCAPES), ngx.worker.id() or 0)
    local function add(name, value)
      lines[#lines + 1] = ("thalweg_%s%s %.0f\n"):format(name, labels, value)
    end
    if port.table.counters(counters, ffi.sizeof(counters), nil) == 0 then
      for _, name in ipairs(NAMES) do
        add(name, tonumber(counters[name]))
      end
    end
    add("nginx_calls", port.calls)
    add("nginx_direct_calls", port.direct_calls)
    add("nginx_waiting", port.waiting)
    add("nginx_wakes", port.wakes)
  end
  return table.concat(lines)
end

return M
