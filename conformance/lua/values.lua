--- Values in JSON, as conformance/README.md describes them, and as the generated code has them.
local ffi = require "ffi"
local null = require "thalweg.null"
local thalweg = require "thalweg"

local M = {}

--- `delay-ms` is `delay_ms`, and a keyword of Lua has a `_`.
function M.snake(name)
  local text = name:gsub("-", "_"):lower()
  return loadstring("local " .. text) and text or text .. "_"
end

--- Parses the description of a type, which docs/internals/boundary.md defines. `list<u8>` has `parts`
-- with the types between the brackets, `record{a:u8}` has `fields` with `name` and `type`.
function M.parse(text)
  local at = 1
  local one

  local function take(pattern)
    local found = text:match("^" .. pattern, at)
    at = at + (found and #found or 0)
    return found
  end

  local function several(stop, each)
    local all = {}
    while not take(stop) do
      take(",")
      all[#all + 1] = each()
    end
    return all
  end

  local function field()
    local name = take("[%w-]+")
    if take(":") then
      return { name = name, type = one() }
    elseif take("%(") then
      local type = one()
      take("%)")
      return { name = name, type = type }
    end
    return { name = name }
  end

  function one()
    local kind = take("[%w_-]+") or "_"
    if take("<") then
      return { kind = kind, parts = several(">", one) }
    elseif take("{") then
      return { kind = kind, fields = several("}", field) }
    end
    return { kind = kind }
  end

  return one()
end

local bits = ffi.new("union { uint32_t u32; uint64_t u64; float f32; double f64; }")

--- Digits in hex, and a number of 64 bits.
local function of_hex(text)
  local number = 0ULL
  for digit in text:sub(3):gmatch(".") do
    number = number * 16 + tonumber(digit, 16)
  end
  return number
end

local function of_digits(text)
  local number = 0ULL
  for digit in text:gmatch("%d") do
    number = number * 10 + tonumber(digit)
  end
  return text:sub(1, 1) == "-" and -ffi.cast("int64_t", number) or number
end

local function bytes_of(hex)
  return (hex:gsub("..", function(digits) return string.char(tonumber(digits, 16)) end))
end
M.bytes_of = bytes_of

function M.hex_of(bytes)
  return (bytes:gsub(".", function(byte) return ("%02x"):format(byte:byte()) end))
end

--- A NaN, whose sign and bits LuaJIT does not keep, is the one that the package returns.
local function number(kind, json)
  if kind == "f32" then
    bits.u32 = tonumber(of_hex(json))
    return bits.u32 > 0xff800000 and 0 / 0 or bits.f32
  end
  bits.u64 = of_hex(json)
  return bits.u64 > 0xfff0000000000000ULL and 0 / 0 or bits.f64
end

--- `{ repeat, count }`: a list of elements, or a text, or hex.
local function repeated(json, is_list)
  if type(json) ~= "table" or json["repeat"] == nil then
    return json
  elseif not is_list then
    return json["repeat"]:rep(json.count)
  end
  local list = {}
  for i = 1, json.count do
    list[i] = json["repeat"]
  end
  return list
end

local value

local function each(type, json, kept)
  local list = {}
  for i, item in ipairs(repeated(json, true)) do
    list[i] = value(type, item, kept)
    if list[i] == nil then
      list[i] = type.kind == "_" and true or null
    end
  end
  return list
end

--- A value from JSON. A stream is a list of its elements, and a future is its value. `kept` has the
-- resources by name.
function value(type, json, kept)
  local kind, parts, fields = type.kind, type.parts, type.fields
  if kind == "_" then
    return nil
  elseif kind == "string" then
    return repeated(json)
  elseif kind == "u64" then
    return of_digits(json)
  elseif kind == "s64" then
    return ffi.cast("int64_t", of_digits(json))
  elseif kind == "f32" or kind == "f64" then
    return number(kind, json)
  elseif kind == "list" and parts[1].kind == "u8" then
    return bytes_of(repeated(json))
  elseif kind == "list" or kind == "stream" then
    return each(parts[1], json, kept)
  elseif kind == "future" then
    return value(parts[1], json, kept)
  elseif kind == "tuple" then
    local tuple = {}
    for i, part in ipairs(parts) do
      tuple[i] = value(part, json[i], kept)
    end
    return tuple
  elseif kind == "option" then
    if json == null then
      return nil
    end
    local some = value(parts[1], json.some, kept)
    if parts[1].kind == "option" then
      return { some = some }
    end
    return some
  elseif kind == "result" then
    local is_ok = json.ok ~= nil
    local payload = value(parts[is_ok and 1 or 2], is_ok and json.ok or json.error, kept)
    return { tag = is_ok and "ok" or "error", value = payload }
  elseif kind == "record" then
    local record = {}
    for _, field in ipairs(fields) do
      record[M.snake(field.name)] = value(field.type, json[field.name], kept)
    end
    return record
  elseif kind == "variant" then
    for _, field in ipairs(fields) do
      if field.name == json.case then
        return { tag = json.case, value = field.type and value(field.type, json.value, kept) }
      end
    end
  elseif kind == "flags" then
    local flags = {}
    for _, name in ipairs(json) do
      flags[M.snake(name)] = true
    end
    return flags
  elseif kind == "own" or kind == "borrow" then
    return kept[json.resource]
  end
  return json -- bool, char, small numbers, an enum
end
M.value = value

--- A value of a parameter.
function M.argument(type, json, kept)
  if type.kind == "future" then
    if json == null then
      return thalweg.no_value
    end
    local result = value(type.parts[1], json.some, kept)
    if result == nil then
      result = true
    end
    return result
  end
  return value(type, json, kept)
end

--- A result with each stream replaced by its elements, and each future by its value.
function M.opened(given)
  if type(given) ~= "table" then
    return given
  elseif given.get then
    return assert(given:get())
  elseif given.element then
    local elements = {}
    for element in given do
      elements[#elements + 1] = element
    end
    return elements
  elseif given._cell then
    return given
  end
  local result = {}
  for key, part in pairs(given) do
    result[key] = M.opened(part)
  end
  return result
end

--- Whether two values are equal and of the same types, bit for bit.
function M.same(left, right)
  if type(left) ~= type(right) then
    return false
  elseif type(left) == "cdata" then
    return ffi.typeof(left) == ffi.typeof(right) and left == right
  elseif type(left) == "number" then
    bits.f64 = left
    local others = bits.u64
    bits.f64 = right
    return bits.u64 == others
  elseif type(left) ~= "table" then
    return left == right
  end
  for key, part in pairs(left) do
    if not M.same(part, right[key]) then
      return false
    end
  end
  for key in pairs(right) do
    if left[key] == nil then
      return false
    end
  end
  return true
end

return M
