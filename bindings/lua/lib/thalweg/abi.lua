--- The C ABI of a Thalweg library: the declarations and the numbers of thalweg.h, which is beside this
-- file. `abi.COMPLETION_CALL` is TW_COMPLETION_CALL.
local ffi = require "ffi"

local M = { FOREVER = 0xffffffffffffffffULL }

--- The text without the lines of the preprocessor, which LuaJIT does not have.
local function read_header()
  local folder = debug.getinfo(1, "S").source:match("^@(.*)abi%.lua$")
  local file = assert(io.open(folder .. "thalweg.h"))
  local text = file:read("*a"):gsub("/%*.-%*/", ""):gsub("#ifdef __cplusplus.-#endif", "")
  file:close()
  for name, number in text:gmatch("TW_([%u_]+) =? ?(%d+)") do
    M[name] = tonumber(number)
  end
  return (text:gsub("#[^\n]*", ""))
end

local header = read_header()
ffi.cdef(header)

--- The names of the fields of a struct that are one uint64_t.
function M.counters_of(struct)
  local names = {}
  for name in header:match("typedef struct " .. struct .. " (%b{})"):gmatch("uint64_t ([%w_]+);") do
    names[#names + 1] = name
  end
  return names
end

--- Any number in a message.
ffi.cdef [[
typedef union thalweg_number {
  uint8_t u8; int8_t s8; uint16_t u16; int16_t s16; uint32_t u32; int32_t s32;
  uint64_t u64; int64_t s64; float f32; double f64;
} thalweg_number;

typedef struct thalweg_handle { tw_handle number; } thalweg_handle;

void *thalweg_realloc(void *old, size_t size) __asm__("realloc");
void thalweg_free(void *memory) __asm__("free");
void *thalweg_dlopen(const char *path, int flags) __asm__("dlopen");
void *thalweg_dlsym(void *library, const char *name) __asm__("dlsym");
int thalweg_dlclose(void *library) __asm__("dlclose");
char *thalweg_dlerror(void) __asm__("dlerror");
]]

return M
