local function put_options(w, at, value)
  w:bool(at, value.fixed)
  w:bool(at + 1, value.ignore_case)
  w:bool(at + 2, value.hidden)
  w:bool(at + 3, value.ignore_files)
  local v1 = value.globs
  local n2 = #v1
  local p2 = w:list(at + 4, n2, 8, 4)
  for i2 = 0, n2 - 1 do
    w:text(p2 + i2 * 8, v1[i2 + 1])
  end
end

local function get_match(m, at)
  local t1 = m:u8(at + 32)
  local v1
  if t1 == 1 then
    v1 = m:u8s(at + 36)
  end
  local t2 = m:u8(at + 44)
  local v2
  if t2 == 1 then
    v2 = m:u8s(at + 48)
  end
  return { path = m:text(at), line = m:u64(at + 8), column = m:u64(at + 16),
    text = m:text(at + 24), path_bytes = v1, text_bytes = v2, cut = m:bool(at + 56) }
end

local function get_progress(m, at)
  local t1 = m:u8(at + 32)
  local v1
  if t1 == 1 then
    v1 = m:text(at + 36)
  end
  return { files = m:u64(at), bytes = m:u64(at + 8), matches = m:u64(at + 16),
    unreadable = m:u64(at + 24), problem = v1 }
end

local function get_search_error(m, at)
  local t1 = m:u8(at)
  local v1
  if t1 == 0 then
    v1 = { tag = "pattern", value = m:text(at + 4) }
  elseif t1 == 1 then
    v1 = { tag = "glob", value = m:text(at + 4) }
  else
    v1 = { tag = "directory", value = m:text(at + 4) }
  end
  return v1
end

local function check_search_error(m, at)
  local t1 = m:check_tag(at, 1, 3)
  if t1 == 0 then
    m:check_text(at + 4)
  elseif t1 == 1 then
    m:check_text(at + 4)
  elseif t1 == 2 then
    m:check_text(at + 4)
  end
end
