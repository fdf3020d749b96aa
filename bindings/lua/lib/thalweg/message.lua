--- Reads messages and records: see "Messages" in thalweg.h. Generated code calls one method for each
-- field: it checks the whole value, then it gets it.
--
-- 1. A malformed message raises an error. UTF-8 is checked by the core only.
-- 2. Records of streams are not checked, because the core has checked them.
-- 3. Values are copies, which stay valid when the message is released.
-- 4. A negative NaN is read as the NaN of LuaJIT, because its bits can be those of another type.
local abi = require "thalweg.abi"
local bit = require "bit"
local errors = require "thalweg.errors"
local ffi = require "ffi"
local handle = require "thalweg.handle"

local band, bor, rshift = bit.band, bit.bor, bit.rshift
local cast, string_of = ffi.cast, ffi.string
local char = string.char

local HEADER = 16
--- The most elements of a list whose elements have no size: MAX_UNSIZED of thalweg_wire.
local MAX_UNSIZED = 65536

local NUMBER = ffi.typeof("const thalweg_number *")
local WORDS = ffi.typeof("const uint32_t *")
local U64 = ffi.typeof("uint64_t")
local NAN = 0 / 0

local Message = {}
Message.__index = Message

local M = {}

function M.new(port)
  return setmetatable({
    port = port,
    base = nil,
    --- The number of bytes that can be read from `base`.
    limit = 0,
    --- Tails begin at or after this offset, in the order of their fields.
    floor = 0,
    handles = 0,
    handles_met = 0,
    --- The function, the client and the completion that the message belongs to.
    method = nil,
    client = nil,
    completion = nil,
    cell = ffi.new("tw_handle[1]"),
  }, Message)
end

--- Opens a message whose root has `size` bytes. Returns the offset of the root.
function Message:open(data, length, layout, size)
  self.base = data
  self.handles = 0
  self.handles_met = 0
  local limit = tonumber(length)
  self.limit = limit
  if data == nil or limit < HEADER then self:fail("it has no header") end
  local words = cast(WORDS, data)
  local first = HEADER + 8 * words[2]
  if words[0] ~= limit or words[1] ~= layout or words[3] ~= first or first + size > limit then
    self:fail("its header is wrong")
  end
  self.handles = words[2]
  self.floor = first + size
  return first
end

--- After the value was checked: it has used each handle.
function Message:close()
  if self.handles_met ~= self.handles then self:fail("a handle is not used") end
end

--- Reads a whole message. `shape` has the size of its root, and the functions that check and get it.
function Message:read(data, length, layout, shape)
  local at = self:open(data, length, layout, shape.size)
  if shape.check then
    shape.check(self, at)
  end
  self:close()
  return shape.get(self, at)
end

--- Opens the records of a batch.
function Message:open_records(batch)
  self.base = batch.base
  self.limit = tonumber(batch.size)
end

function Message:fail(why)
  error(errors.argument((self.method and self.method.name or "message")
    .. ": the library's message is malformed: " .. why), 0)
end

for _, field in ipairs { "u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64" } do
  Message[field] = function(self, at)
    return cast(NUMBER, self.base + at)[field]
  end
end

--- LuaJIT takes some negative NaNs for pointers, and does not change those that it reads: rule 4.
function Message:f32(at)
  local number = cast(NUMBER, self.base + at)
  return number.u32 > 0xff800000 and NAN or number.f32
end

function Message:f64(at)
  local number = cast(NUMBER, self.base + at)
  return number.u64 > 0xfff0000000000000ULL and NAN or number.f64
end

function Message:bool(at)
  return self.base[at] == 1
end

function Message:char(at)
  local code = cast(NUMBER, self.base + at).u32
  if code < 0x80 then return char(code) end
  local function tail(shift)
    return bor(0x80, band(rshift(code, shift), 0x3f))
  end
  if code < 0x800 then
    return char(bor(0xc0, rshift(code, 6)), tail(0))
  elseif code < 0x10000 then
    return char(bor(0xe0, rshift(code, 12)), tail(6), tail(0))
  end
  return char(bor(0xf0, rshift(code, 18)), tail(12), tail(6), tail(0))
end

--- `string` and `list<u8>`.
function Message:string(at)
  local words = cast(WORDS, self.base + at)
  return string_of(self.base + words[0], words[1])
end

local SIZES = { u8 = 1, s8 = 1, u16 = 2, s16 = 2, u32 = 4, s32 = 4, u64 = 8, s64 = 8, f32 = 4, f64 = 8 }

function Message:numbers(at, kind)
  local words = cast(WORDS, self.base + at)
  return self:number_array(words[0], kind, words[1])
end

--- `count` numbers in place. Bytes are a string.
function Message:number_array(first, kind, count)
  if kind == "u8" then return string_of(self.base + first, count) end
  local get, size, values = self[kind], SIZES[kind], {}
  for i = 1, count do
    values[i] = get(self, first + (i - 1) * size)
  end
  return values
end

--- The table of flags with these bits.
function Message.flags(_, bits, names)
  local flags = {}
  for number = 0, #names do
    if band(rshift(bits, number), 1) == 1 then
      flags[names[number]] = true
    end
  end
  return flags
end

function Message:take(at)
  local index = cast(NUMBER, self.base + at).u32
  local code = self.port.table.take_handle(self.completion, index, self.cell, self.port.error)
  if code ~= abi.OK then error(errors.from(self.port.error), 0) end
  return U64(self.cell[0])
end

--- A resource of this class.
function Message:resource(at, class)
  return handle.new(class, self.port, self:take(at), self.client)
end

--- A stream or a future that the service writes.
function Message:stream(at, element)
  return M.make_stream(self.port, self:take(at), self.client, self.method, element)
end

function Message:future(at, element)
  return M.make_future(self.port, self:take(at), self.client, self.method, element)
end

function Message:check_bool(at)
  if self.base[at] > 1 then self:fail("a bool") end
end

function Message:check_char(at)
  local code = cast(NUMBER, self.base + at).u32
  if code > 0x10ffff or (code >= 0xd800 and code < 0xe000) then self:fail("a char") end
end

--- Checks the tail of a list of elements of `size` bytes. Returns their number.
function Message:check_list(at, size, align)
  local words = cast(WORDS, self.base + at)
  local first, count = words[0], words[1]
  if count == 0 or size == 0 then
    if first ~= 0 or count > MAX_UNSIZED then self:fail("an empty list") end
    return count
  end
  if first < self.floor or first % align ~= 0 or first + count * size > self.limit then
    self:fail("a list is outside of it")
  end
  self.floor = first + count * size
  return count
end

function Message:check_text(at)
  self:check_list(at, 1, 1)
end

--- Checks the number of a case, which has `size` bytes. Returns it.
function Message:check_tag(at, size, count)
  local number = size == 1 and self:u8(at) or size == 2 and self:u16(at) or self:u32(at)
  if number >= count then self:fail("an unknown case") end
  return number
end

function Message:check_flags(at, size, count)
  self:check_tag(at, size, 2 ^ count)
end

function Message:check_handle(at)
  local index = cast(NUMBER, self.base + at).u32
  if index >= self.handles or index ~= self.handles_met then self:fail("a handle") end
  self.handles_met = index + 1
end

return M
