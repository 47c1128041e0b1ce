-- Joins overrides with those that are kept, and returns Redis' clock, the revision, and all of them if the revision is not
-- the one that the caller has seen. Later versions win: join in mark.go.
-- KEYS[1] all overrides, one field each: "version|until|since|last|released|words", times in microseconds on Redis' clock;
-- the field "revision" changes with every change
-- ARGV[1] revision seen  ARGV[2] the most that are kept  ARGV[3] how long past its end one is remembered, microseconds
-- ARGV[4] how far ahead a stamp may lie, microseconds; then for each override: field, version, microseconds until it ends,
-- since it began, until its last end, released, words
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local most, memory, ahead = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])

local function parse(text)
  if type(text) ~= 'string' then return nil end
  local version, ends, since, last, released, words = string.match(text, '^(%d+%.%x+)|(%d+)|(%d+)|(%d+)|([01])|(.*)$')
  if not version or #version ~= 25 then return nil end
  local m = {version = version, ends = tonumber(ends), since = tonumber(since), last = tonumber(last),
    released = released, words = words}
  -- A stamp from the far future could never be replaced, and never be forgotten.
  if m.last > now + ahead or tonumber(string.sub(version, 1, 16)) > now + 2 * ahead then return nil end
  return m
end
local function put(field, m)
  redis.call('HSET', KEYS[1], field, string.format('%s|%.0f|%.0f|%.0f|%s|%s', m.version, m.ends, m.since, m.last,
    m.released, m.words))
end

local kind = redis.call('TYPE', KEYS[1]).ok
-- Another type under our name is rubbish.
if kind ~= 'hash' and kind ~= 'none' then redis.call('DEL', KEYS[1]) end

local changed, ttl = false, 0
for i = 5, #ARGV, 7 do
  local field = ARGV[i]
  local new = {version = ARGV[i + 1], ends = math.max(now + ARGV[i + 2], 0), since = math.max(now - ARGV[i + 3], 0),
    last = math.max(now + ARGV[i + 4], 0), released = ARGV[i + 5], words = ARGV[i + 6]}
  local old = parse(redis.call('HGET', KEYS[1], field))
  local last = new.last
  if old then last = math.max(last, old.last) end
  if not old or new.version > old.version then
    new.last = last
    put(field, new)
    changed = true
  elseif last > old.last then
    old.last = last
    put(field, old)
  end
  ttl = math.max(ttl, math.ceil((last + memory - now) / 1000))
end

if changed then
  -- At the bound, rarely: what is over goes, what would be forgotten first before the rest.
  local size = redis.call('HLEN', KEYS[1])
  if size > most then
    local all = redis.call('HGETALL', KEYS[1])
    local over = {}
    for i = 1, #all, 2 do
      if all[i] ~= 'revision' then
        local m = parse(all[i + 1])
        if not m then over[#over + 1] = {field = all[i], last = 0}
        elseif m.released == '1' or m.ends <= now then over[#over + 1] = {field = all[i], last = m.last} end
      end
    end
    table.sort(over, function(a, b) return a.last < b.last end)
    for i = 1, math.min(#over, size - most) do redis.call('HDEL', KEYS[1], over[i].field) end
  end
  local old = redis.call('HGET', KEYS[1], 'revision')
  local revision = string.format('%.0f', now)
  if revision == old then revision = string.format('%.0f', now + 1) end
  redis.call('HSET', KEYS[1], 'revision', revision)
end
if ttl > 0 and ttl > redis.call('PTTL', KEYS[1]) then redis.call('PEXPIRE', KEYS[1], ttl) end

local revision = redis.call('HGET', KEYS[1], 'revision') or ''
if revision == ARGV[1] then return {clock[1], clock[2], revision, {}} end
if redis.call('HLEN', KEYS[1]) > 2 * most then return redis.error_reply('too many overrides are kept') end
return {clock[1], clock[2], revision, redis.call('HGETALL', KEYS[1])}
