-- Reads lines `ROOT HEX VERDICT` and compares the verdict of the generated code: `-` malformed, `?`
-- either, `+` well-formed, `=` also the bytes that the writer writes for its value. LuaJIT keeps no
-- bits of a NaN.
local errors = require "thalweg.errors"
local messages = require "thalweg.message"
local null = require "thalweg.null"
local writers = require "thalweg.writer"

local ffi = require "ffi"

-- Stands in for the part of the package that needs nginx.
local methods = {}
local Package = { client_class = {}, import = function() end }
Package.__index = Package
function Package.method(_, method)
  method.layout = tonumber(method.hashes[2] % 0x100000000ULL)
  methods[method.name:match("%.(.*)")] = method
  return method
end
package.loaded["thalweg.generated"] = {
  call = function() end,
  class = function(name) return { name = name } end,
  new_table = require "table.new",
  null = null,
  package = function() return setmetatable({}, Package) end,
}
require "conformance"

local message = messages.new({})
local writer = writers.new()

-- A pointer does not keep its memory.
local memory

local function read(method, bytes)
  memory = ffi.new("uint64_t[?]", math.ceil(#bytes / 8) + 1)
  ffi.copy(memory, bytes)
  message.method = method
  return message:read(ffi.cast("const uint8_t *", memory), #bytes, method.layout, method.ok)
end

-- The message of the arguments, with the layout of the result: a record of one field is the same.
local function write(method, value)
  local root = writer:begin(method.name, method.layout, 0, method.params)
  method.put(writer, root, value)
  writer:finish()
  return ffi.string(writer.data, writer.size)
end

local function same(left, right)
  if type(left) ~= "table" or left == null then
    return left == right or (left ~= left and right ~= right)
  end
  for key, value in pairs(left) do
    if not same(value, right[key]) then return false end
  end
  return true
end

local function has_nan(value)
  if type(value) ~= "table" or value == null then
    return value ~= value
  end
  for _, part in pairs(value) do
    if has_nan(part) then return true end
  end
  return false
end

local count, written = 0, 0
for line in io.lines(arg[1]) do
  local root, hex, verdict = line:match("^(%S+) (%S*) (.)$")
  local name = root:gsub(":reply", "")
  local bytes = hex:gsub("..", function(digits) return string.char(tonumber(digits, 16)) end)
  local method = methods[name]
  local ok, value = pcall(read, method, bytes)
  count = count + 1
  if not ok then
    assert(errors.is(value), tostring(value))
    assert(verdict == "-" or verdict == "?", line .. ": " .. tostring(value))
  else
    assert(verdict ~= "-", line)
    if name:find("^echo%-") and verdict ~= "?" then
      local again = write(method, value)
      if verdict == "=" and not has_nan(value) then
        assert(again == bytes, line)
      end
      assert(same(read(method, again), value), line)
      written = written + 1
    end
  end
end
assert(written > 1000, written .. " messages were written")
print(count)
