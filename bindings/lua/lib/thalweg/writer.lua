--- Writes messages: see "Messages" in thalweg.h. Generated code calls one method for each field.
--
-- 1. A writer has one buffer, in which it writes one message after the other. Offsets are relative
--    to the message. The buffer can move whenever memory is reserved.
-- 2. Reading a value can run code of the program: metamethods. That code can make calls, which then
--    use another writer: `is_open`.
-- 3. A value of the wrong type or range raises an error, which `call` returns.
require "thalweg.abi"
local bit = require "bit"
local errors = require "thalweg.errors"
local ffi = require "ffi"
local null = require "thalweg.null"

local C = ffi.C
local band = bit.band
local cast, copy, fill, istype = ffi.cast, ffi.copy, ffi.fill, ffi.istype
local floor = math.floor

--- The largest message, in bytes: TW_MESSAGE_MAX.
local MESSAGE_MAX = 0x7fffffff
local HEADER = 16
--- A string of at least this size is borrowed by the library instead of copied, if nothing follows it in the
-- message. docs/internals/lua.md has the measurement.
local BORROW = 4096
--- The size of a new buffer. A larger buffer than KEEP is freed after its message was sent.
local INITIAL = 4096
local KEEP = 1024 * 1024

local NUMBER = ffi.typeof("thalweg_number *")
local BYTES = ffi.typeof("uint8_t *")
local WORDS = ffi.typeof("uint32_t *")
local HANDLES = ffi.typeof("uint64_t *")
local U64 = ffi.typeof("uint64_t")
local S64 = ffi.typeof("int64_t")

local Writer = {}
Writer.__index = Writer

local M = {}

function M.new()
  return setmetatable({
    data = ffi.gc(cast(BYTES, C.thalweg_realloc(nil, INITIAL)), C.thalweg_free),
    capacity = INITIAL,
    --- Where the next tail begins, and in the end the size of the message.
    size = 0,
    --- A string that was not copied: the end of the message.
    borrowed = nil,
    is_open = false,
    what = "",
    handles = 0,
    handles_put = 0,
    --- Resources that the message gives to the service, and streams that are parameters.
    given = {},
    upstreams = {},
  }, Writer)
end

--- Begins a message of the function `what`, with a table of `handles` handles and a root of `size`
-- bytes. Returns the offset of the root. With `math.huge` it has no table: the handles are counted.
function Writer:begin(what, layout, handles, size)
  if self.capacity > KEEP then
    self:resize(INITIAL)
  end
  self.is_open = true
  self.what = what
  self.handles = handles
  self.handles_put = 0
  if #self.given > 0 then self.given = {} end
  if #self.upstreams > 0 then self.upstreams = {} end
  local first = HEADER
  if handles ~= math.huge then
    first = HEADER + 8 * handles
  else
    handles = 0
  end
  self.size, self.borrowed = 0, nil
  self:reserve(first + size, 8, true)
  local words = cast(WORDS, self.data)
  words[1] = layout
  words[2] = handles
  words[3] = first
  return first
end

--- Completes the message: `size` bytes at `data`. If `borrows` is set, the string `borrowed` can be its end.
function Writer:finish(borrows)
  if self.borrowed and not (borrows and self.size <= MESSAGE_MAX) then
    self:copy_borrowed()
  end
  if self.handles_put ~= self.handles then
    self:fail(nil, self.handles .. " handles", self.handles_put)
  end
  cast(WORDS, self.data)[0] = self.size
  self.is_open = false
end

--- Ends the message without using it.
function Writer:abandon()
  self.is_open = false
  self.given = {}
  self.upstreams = {}
  return self.handles_put
end

function Writer:resize(capacity)
  local memory = C.thalweg_realloc(ffi.gc(self.data, nil), capacity)
  if memory == nil then
    ffi.gc(self.data, C.thalweg_free)
    error(errors.new("overloaded", self.what .. ": no memory for its arguments", true), 0)
  end
  self.data = ffi.gc(cast(BYTES, memory), C.thalweg_free)
  self.capacity = capacity
end

--- Reserves `size` bytes, and returns their offset. They are 0 if `clear` is set.
function Writer:reserve(size, align, clear)
  if self.borrowed then
    self:copy_borrowed()
  end
  local old = self.size
  local at = old
  if align > 1 then
    at = band(old + align - 1, -align)
  end
  local last = at + size
  if last > MESSAGE_MAX then self:fail(nil, "at most 2 GiB of arguments", last) end
  if last > self.capacity then
    self:resize(math.min(math.max(last, 2 * self.capacity), MESSAGE_MAX))
  end
  if clear then
    fill(self.data + old, last - old)
  elseif at > old then
    fill(self.data + old, at - old)
  end
  self.size = last
  return at
end

local function shown(value)
  local kind = type(value)
  if kind == "string" then
    return string.format("%q", #value > 40 and value:sub(1, 40) .. ".." or value)
  elseif kind == "table" or kind == "function" or kind == "thread" then
    return "a " .. kind
  end
  return value == null and "null" or tostring(value)
end

--- Raises the error for the value of the field `name`.
function Writer:fail(name, expected, value)
  local place = name and name .. ": " or ""
  error(errors.argument(
    self.what .. ": " .. place .. "expected " .. expected .. ", got " .. shown(value)), 0)
end

for _, range in ipairs {
  { "u8", 0, 0xff }, { "s8", -0x80, 0x7f },
  { "u16", 0, 0xffff }, { "s16", -0x8000, 0x7fff },
  { "u32", 0, 0xffffffff }, { "s32", -0x80000000, 0x7fffffff },
} do
  local field, low, high = range[1], range[2], range[3]
  local expected = "an integer from " .. low .. " to " .. high
  Writer[field] = function(self, at, value, name)
    if type(value) ~= "number" or not (value >= low and value <= high) or floor(value) ~= value then
      self:fail(name, expected, value)
    end
    cast(NUMBER, self.data + at)[field] = value
  end
end

local function wide(field, low, expected, fits)
  Writer[field] = function(self, at, value, name)
    if type(value) == "number" then
      if not (value >= low and value <= 2 ^ 53) or floor(value) ~= value then
        self:fail(name, expected, value)
      end
    elseif type(value) ~= "cdata" or not fits(value) then
      self:fail(name, expected, value)
    end
    cast(NUMBER, self.data + at)[field] = value
  end
end

wide("u64", 0, "an integer from 0 to 2^53, or a uint64_t", function(value)
  return istype(U64, value) or (istype(S64, value) and value >= 0)
end)
wide("s64", -2 ^ 53, "an integer from -2^53 to 2^53, or an int64_t", function(value)
  return istype(S64, value) or (istype(U64, value) and value < 2ULL ^ 63)
end)

for _, field in ipairs { "f32", "f64" } do
  Writer[field] = function(self, at, value, name)
    if type(value) ~= "number" then self:fail(name, "a number", value) end
    cast(NUMBER, self.data + at)[field] = value
  end
end

function Writer:bool(at, value, name)
  if type(value) ~= "boolean" then self:fail(name, "a boolean", value) end
  self.data[at] = value and 1 or 0
end

--- Of a character of 1 to 4 bytes: its first byte is at least FIRST and less than LAST, and its code
-- point is at least LEAST.
local FIRST, LAST = { 0, 0xc0, 0xe0, 0xf0 }, { 0x80, 0xe0, 0xf0, 0xf8 }
local LEAST = { 0, 0x80, 0x800, 0x10000 }

--- The code point of a text that is one character in UTF-8, or nil.
local function code_point(text)
  local lead, count = text:byte(1), #text
  local first = FIRST[count]
  if not first or lead < first or lead >= LAST[count] then return nil end
  local code = lead - first
  for i = 2, count do
    local byte = text:byte(i)
    if band(byte, 0xc0) ~= 0x80 then return nil end
    code = code * 64 + band(byte, 0x3f)
  end
  return code >= LEAST[count] and code <= 0x10ffff and (code < 0xd800 or code > 0xdfff) and code or nil
end

function Writer:char(at, value, name)
  local code = type(value) == "string" and code_point(value)
  if not code then self:fail(name, "a string with one character", value) end
  cast(NUMBER, self.data + at).u32 = code
end

--- Reserves the tail of a list of `count` elements of `size` bytes, and returns its offset. The
-- empty list is {0, 0}, and elements without a size have no tail.
function Writer:list(at, count, size, align)
  if count == 0 then return 0 end
  local first = 0
  if size > 0 then
    first = self:reserve(count * size, align, true)
  end
  local words = cast(WORDS, self.data + at)
  words[0] = first
  words[1] = count
  return first
end

--- `string`, and `list<u8>`, which is a string of bytes.
function Writer:string(at, value, name)
  if type(value) ~= "string" then self:fail(name, "a string", value) end
  local length = #value
  if length == 0 then return end
  local is_borrowed = length >= BORROW
  local first = self:reserve(is_borrowed and 0 or length, 1)
  local words = cast(WORDS, self.data + at)
  words[0] = first
  words[1] = length
  if is_borrowed then
    self.borrowed, self.size = value, first + length
  else
    copy(self.data + first, value, length)
  end
end

--- Copies the string that was not copied, because something follows it.
function Writer:copy_borrowed()
  local value = self.borrowed
  self.borrowed, self.size = nil, self.size - #value
  local first = self:reserve(#value, 1) -- moves the buffer
  copy(self.data + first, value, #value)
end

local SIZES = { u8 = 1, s8 = 1, u16 = 2, s16 = 2, u32 = 4, s32 = 4, u64 = 8, s64 = 8, f32 = 4, f64 = 8 }

--- A table: the value of a record, variant, list or tuple.
function Writer:table(value, name)
  if type(value) ~= "table" then self:fail(name, "a table", value) end
  return value
end

--- A list of numbers of the type `kind`.
function Writer:numbers(at, value, kind, name)
  local count = #self:table(value, name)
  local size = SIZES[kind]
  local first = self:list(at, count, size, size)
  for i = 1, count do
    self[kind](self, first + (i - 1) * size, value[i], name)
  end
end

--- `count` numbers in place. Bytes are a string.
function Writer:number_array(at, value, kind, count, name)
  if kind == "u8" then
    if type(value) ~= "string" or #value ~= count then
      self:fail(name, "a string of " .. count .. " bytes", value)
    end
    copy(self.data + at, value, count)
    return
  end
  self:exactly(value, count, name)
  local size = SIZES[kind]
  for i = 1, count do
    self[kind](self, at + (i - 1) * size, value[i], name)
  end
end

--- A list of a fixed length.
function Writer:exactly(value, count, name)
  if #self:table(value, name) ~= count then self:fail(name, count .. " elements", #value) end
end

--- The number of a case of an enum. `names` has the names from 0 on.
function Writer:case(value, names, name)
  for number = 0, #names do
    if names[number] == value then return number end
  end
  self:fail(name, "one of " .. table.concat(names, ", ", 0), value)
end

--- The bits of flags: a table with `true` for each flag that is set.
function Writer:bits(value, names, name)
  local bits = 0
  self:table(value, name)
  for number = 0, #names do
    local is = value[names[number]]
    if is == true then
      bits = bits + 2 ^ number
    elseif is then
      self:fail(names[number], "a boolean", is)
    end
  end
  return bits
end

--- A resource that the service uses during the call.
function Writer:borrow(at, value, class, name)
  if getmetatable(value) ~= class then
    self:fail(name, "an open " .. class._name, value)
  elseif value._cell.number == 0 then
    error(errors.new("closed", self.what .. ": the " .. class._name .. " is closed"), 0)
  elseif value._port ~= self.port then
    self:fail(name, "a " .. class._name .. " of the same library", value)
  end
  self:handle(at, value._cell.number)
end

--- A resource that belongs to the service afterwards.
function Writer:own(at, value, class, name)
  self:borrow(at, value, class, name)
  for _, other in ipairs(self.given) do
    if other == value then
      self:fail(name, "another " .. class._name .. ": this one was passed already", value)
    end
  end
  self.given[#self.given + 1] = value
end

--- Elements that are sent while the call runs: a table or an iterator function. `parameter` is its
-- number, with `self` counted.
function Writer:stream(at, values, parameter, element, name)
  local kind = type(values)
  if kind ~= "table" and kind ~= "function" then
    self:fail(name, "a table or a function", values)
  end
  self:upstream(at, values, parameter, element, name, false)
end

--- A value, or a function that returns it.
function Writer:future(at, value, parameter, element, name)
  self:upstream(at, value, parameter, element, name, true)
end

function Writer:upstream(at, values, parameter, element, name, is_future)
  self.upstreams[#self.upstreams + 1] = {
    values = values, parameter = parameter, element = element, name = name, is_future = is_future,
    index = self.handles_put,
  }
  self:handle(at, 0)
end

function Writer:handle(at, number)
  local index = self.handles_put
  if index >= self.handles then self:fail(nil, self.handles .. " handles", "more") end
  self.handles_put = index + 1
  self:set_handle(index, number)
  cast(NUMBER, self.data + at).u32 = index
end

--- Sets an entry of the table of handles.
function Writer:set_handle(index, number)
  if self.handles ~= math.huge then
    cast(HANDLES, self.data + HEADER)[index] = number
  end
end

return M
