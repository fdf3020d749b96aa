local function put_point(w, at, value)
  w:s32(at, value.x)
  w:s32(at + 4, value.y)
end

local function get_point(m, at)
  return { x = m:s32(at), y = m:s32(at + 4) }
end

local function put_shape(w, at, value)
  if value.tag == "nothing" then
    w:u8(at, 0)
  elseif value.tag == "circle" then
    w:u8(at, 1)
    w:f64(at + 8, value.value)
  elseif value.tag == "polygon" then
    w:u8(at, 2)
    local v1 = value.value
    local n2 = #v1
    local p2 = w:list(at + 8, n2, 8, 4)
    for i2 = 0, n2 - 1 do
      put_point(w, p2 + i2 * 8, v1[i2 + 1])
    end
  elseif value.tag == "part" then
    w:u8(at, 3)
    local v3 = value.value
    put_point(w, at + 8, v3[1])
    local v4 = v3[2]
    if v4 ~= nil then
      w:u8(at + 16, 1)
      w:text(at + 20, v4)
    end
  else
    w:fail("a case of shape is expected")
  end
end

local function get_shape(m, at)
  local t1 = m:u8(at)
  local v1
  if t1 == 0 then
    v1 = { tag = "nothing" }
  elseif t1 == 1 then
    v1 = { tag = "circle", value = m:f64(at + 8) }
  elseif t1 == 2 then
    local n2 = m:u32(at + 12)
    local p2 = m:u32(at + 8)
    local v2 = new_table(n2, 0)
    for i2 = 0, n2 - 1 do
      v2[i2 + 1] = get_point(m, p2 + i2 * 8)
    end
    v1 = { tag = "polygon", value = v2 }
  else
    local t3 = m:u8(at + 16)
    local v3
    if t3 == 1 then
      v3 = m:text(at + 20)
    end
    v1 = { tag = "part", value = { get_point(m, at + 8), v3 } }
  end
  return v1
end

local function check_shape(m, at)
  local t1 = m:check_tag(at, 1, 4)
  if t1 == 2 then
    m:check_list(at + 8, 8, 4)
  elseif t1 == 3 then
    local t2 = m:check_tag(at + 16, 1, 2)
    if t2 == 1 then
      m:check_text(at + 20)
    end
  end
end

local function put_every(w, at, value)
  w:bool(at, value.flag)
  w:char(at + 4, value.letter)
  w:u64(at + 8, value.big)
  w:u8s(at + 16, value.bytes)
  w:f32s(at + 24, value.numbers)
  local v1 = value.letters
  local n2 = #v1
  local p2 = w:list(at + 32, n2, 4, 4)
  for i2 = 0, n2 - 1 do
    w:char(p2 + i2 * 4, v1[i2 + 1])
  end
  local v3 = value.name
  if v3 ~= nil then
    w:u8(at + 40, 1)
    w:text(at + 44, v3)
  end
  local v4 = value.twice
  if v4 ~= nil then
    w:u8(at + 52, 1)
    local v5 = v4.some
    if v5 ~= nil then
      w:u8(at + 56, 1)
      w:u32(at + 60, v5)
    end
  end
  local v6 = value.at
  if v6 ~= nil then
    w:u8(at + 64, 1)
    put_point(w, at + 68, v6)
  end
  local v7 = value.grid
  local n8 = #v7
  local p8 = w:list(at + 76, n8, 8, 4)
  for i8 = 0, n8 - 1 do
    w:s32s(p8 + i8 * 8, v7[i8 + 1])
  end
  local v9 = value.pairs
  local n10 = #v9
  local p10 = w:list(at + 84, n10, 12, 4)
  for i10 = 0, n10 - 1 do
    local v11 = v9[i10 + 1]
    w:text(p10 + i10 * 12, v11[1])
    local v12 = v11[2]
    if v12 ~= nil then
      w:u8(p10 + i10 * 12 + 8, 1)
      w:u8(p10 + i10 * 12 + 9, v12)
    end
  end
  local v13 = value.outcome
  if v13.tag == "ok" then
    w:u8(at + 96, 0)
    w:u64(at + 104, v13.value)
  elseif v13.tag == "error" then
    w:u8(at + 96, 1)
    w:text(at + 104, v13.value)
  else
    w:fail("a case of result<u64, string> is expected")
  end
  local v14 = value.bare
  if v14.tag == "ok" then
    w:u8(at + 112, 0)
  elseif v14.tag == "error" then
    w:u8(at + 112, 1)
  else
    w:fail("a case of result is expected")
  end
  w:u8(at + 113, w:enum(color_numbers, value.color))
  w:u8(at + 114, w:flags(value.rights, 3))
  w:u8_array(at + 115, value.key, 4)
  local v15 = value.both
  w:exactly(v15, 2)
  for i16 = 0, 2 - 1 do
    w:text(at + 120 + i16 * 8, v15[i16 + 1])
  end
  local v17 = value.places
  w:exactly(v17, 2)
  for i18 = 0, 2 - 1 do
    put_point(w, at + 136 + i18 * 8, v17[i18 + 1])
  end
  local v19 = value.names
  local n20 = #v19
  local p20 = w:list(at + 152, n20, 8, 4)
  for i20 = 0, n20 - 1 do
    w:text(p20 + i20 * 8, v19[i20 + 1])
  end
  put_shape(w, at + 160, value.shape)
  local v21 = value.colors
  local n22 = #v21
  local p22 = w:list(at + 192, n22, 1, 1)
  for i22 = 0, n22 - 1 do
    w:u8(p22 + i22, w:enum(color_numbers, v21[i22 + 1]))
  end
end

local function get_every(m, at)
  local n1 = m:u32(at + 36)
  local p1 = m:u32(at + 32)
  local v1 = new_table(n1, 0)
  for i1 = 0, n1 - 1 do
    v1[i1 + 1] = m:char(p1 + i1 * 4)
  end
  local t2 = m:u8(at + 40)
  local v2
  if t2 == 1 then
    v2 = m:text(at + 44)
  end
  local t3 = m:u8(at + 52)
  local v3
  if t3 == 1 then
    local t4 = m:u8(at + 56)
    local v4
    if t4 == 1 then
      v4 = m:u32(at + 60)
    end
    v3 = { some = v4 }
  end
  local t5 = m:u8(at + 64)
  local v5
  if t5 == 1 then
    v5 = get_point(m, at + 68)
  end
  local n6 = m:u32(at + 80)
  local p6 = m:u32(at + 76)
  local v6 = new_table(n6, 0)
  for i6 = 0, n6 - 1 do
    v6[i6 + 1] = m:s32s(p6 + i6 * 8)
  end
  local n7 = m:u32(at + 88)
  local p7 = m:u32(at + 84)
  local v7 = new_table(n7, 0)
  for i7 = 0, n7 - 1 do
    local t8 = m:u8(p7 + i7 * 12 + 8)
    local v8
    if t8 == 1 then
      v8 = m:u8(p7 + i7 * 12 + 9)
    end
    v7[i7 + 1] = { m:text(p7 + i7 * 12), v8 }
  end
  local t9 = m:u8(at + 96)
  local v9
  if t9 == 0 then
    v9 = { tag = "ok", value = m:u64(at + 104) }
  else
    v9 = { tag = "error", value = m:text(at + 104) }
  end
  local t10 = m:u8(at + 112)
  local v10
  if t10 == 0 then
    v10 = { tag = "ok" }
  else
    v10 = { tag = "error" }
  end
  local v11 = new_table(2, 0)
  for i11 = 0, 2 - 1 do
    v11[i11 + 1] = m:text(at + 120 + i11 * 8)
  end
  local v12 = new_table(2, 0)
  for i12 = 0, 2 - 1 do
    v12[i12 + 1] = get_point(m, at + 136 + i12 * 8)
  end
  local n13 = m:u32(at + 156)
  local p13 = m:u32(at + 152)
  local v13 = new_table(n13, 0)
  for i13 = 0, n13 - 1 do
    v13[i13 + 1] = m:text(p13 + i13 * 8)
  end
  local n14 = m:u32(at + 196)
  local p14 = m:u32(at + 192)
  local v14 = new_table(n14, 0)
  for i14 = 0, n14 - 1 do
    v14[i14 + 1] = color_names[m:u8(p14 + i14)]
  end
  return { flag = m:bool(at), letter = m:char(at + 4), big = m:u64(at + 8), bytes = m:u8s(at + 16),
    numbers = m:f32s(at + 24), letters = v1, name = v2, twice = v3, at = v5, grid = v6, pairs = v7,
    outcome = v9, bare = v10, color = color_names[m:u8(at + 113)], rights = m:u8(at + 114),
    key = m:u8_array(at + 115, 4), both = v11, places = v12, names = v13, shape = get_shape(m,
                                                                                            at + 160), colors = v14 }
end

local function check_every(m, at)
  m:check_bool(at)
  m:check_char(at + 4)
  m:check_list(at + 16, 1, 1)
  m:check_list(at + 24, 4, 4)
  local n1 = m:check_list(at + 32, 4, 4)
  local p1 = m:u32(at + 32)
  for i1 = 0, n1 - 1 do
    m:check_char(p1 + i1 * 4)
  end
  local t2 = m:check_tag(at + 40, 1, 2)
  if t2 == 1 then
    m:check_text(at + 44)
  end
  local t3 = m:check_tag(at + 52, 1, 2)
  if t3 == 1 then
    m:check_tag(at + 56, 1, 2)
  end
  m:check_tag(at + 64, 1, 2)
  local n4 = m:check_list(at + 76, 8, 4)
  local p4 = m:u32(at + 76)
  for i4 = 0, n4 - 1 do
    m:check_list(p4 + i4 * 8, 4, 4)
  end
  local n5 = m:check_list(at + 84, 12, 4)
  local p5 = m:u32(at + 84)
  for i5 = 0, n5 - 1 do
    m:check_text(p5 + i5 * 12)
    m:check_tag(p5 + i5 * 12 + 8, 1, 2)
  end
  local t6 = m:check_tag(at + 96, 1, 2)
  if t6 == 1 then
    m:check_text(at + 104)
  end
  m:check_tag(at + 112, 1, 2)
  m:check_tag(at + 113, 1, 2)
  m:check_flags(at + 114, 1, 3)
  for i7 = 0, 2 - 1 do
    m:check_text(at + 120 + i7 * 8)
  end
  local n8 = m:check_list(at + 152, 8, 4)
  local p8 = m:u32(at + 152)
  for i8 = 0, n8 - 1 do
    m:check_text(p8 + i8 * 8)
  end
  check_shape(m, at + 160)
  local n9 = m:check_list(at + 192, 1, 1)
  local p9 = m:u32(at + 192)
  for i9 = 0, n9 - 1 do
    m:check_tag(p9 + i9, 1, 2)
  end
end
