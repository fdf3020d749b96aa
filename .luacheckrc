-- Settings of luacheck for the Lua files of the repository: they run in nginx.
std = "ngx_lua"
globals = { "ngx.load_ffi" }
max_line_length = 120
files["**/generated/lua/*.lua"] = { max_line_length = false }
