--- The value of an option without a value where Lua's `nil` is impossible: in lists and in streams.
-- It is `ngx.null`.
return ngx and ngx.null or setmetatable({}, { __tostring = function() return "null" end })
