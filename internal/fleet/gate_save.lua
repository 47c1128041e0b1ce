-- Writes one gate down. An end only moves forward, and growth is that of the later closing: merge in merge.go.
-- KEYS[1] all gates, one field each: "until|updated|step|kind" in microseconds on Redis' clock
-- ARGV[1] field  ARGV[2] microseconds until the gate opens, less than zero once it has  ARGV[3] microseconds since it
-- closed  ARGV[4] step  ARGV[5] kind  ARGV[6] the most gates that are kept
local minute = 60 * 1000000
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]

local function parse(text)
  if type(text) ~= 'string' then return nil end
  local ends, updated, step, kind = string.match(text, '^(%d+)|(%d+)|(%d+)|([%l_]+)$')
  if not ends then return nil end
  return {ends = tonumber(ends), updated = tonumber(updated), step = tonumber(step), kind = kind}
end
local function forget(g)
  return g.ends + math.min(math.max(g.ends - g.updated, 10 * minute), 7 * 24 * 60 * minute)
end

local old = redis.pcall('HGET', KEYS[1], ARGV[1])
-- Another type under our name is rubbish.
if type(old) == 'table' then redis.call('DEL', KEYS[1]) end
old = parse(old)
local new = {ends = now + ARGV[2], updated = now - ARGV[3], step = tonumber(ARGV[4]), kind = ARGV[5]}
if old then
  local a, b = new, old
  if b.updated > a.updated then a, b = b, a end
  new = {ends = a.ends, updated = a.updated, step = a.step, kind = a.kind}
  if b.ends > a.ends then new.ends, new.kind = b.ends, b.kind end
  if a.updated - b.updated <= 1000000 and b.step > new.step then new.step = b.step end
end
if forget(new) <= now then return 'expired' end
redis.call('HSET', KEYS[1], ARGV[1],
  string.format('%.0f|%.0f|%.0f|%s', new.ends, new.updated, new.step, new.kind))

-- At the bound, rarely: what is over goes, then what ends first, until a quarter of the room is free again.
local most = tonumber(ARGV[6])
if redis.call('HLEN', KEYS[1]) > most then
  local all = redis.call('HGETALL', KEYS[1])
  local left = {}
  for i = 1, #all, 2 do
    local g = parse(all[i + 1])
    if not g or forget(g) <= now then
      redis.call('HDEL', KEYS[1], all[i])
    else
      left[#left + 1] = {field = all[i], ends = g.ends}
    end
  end
  table.sort(left, function(a, b) return a.ends > b.ends end)
  for i = math.floor(most * 3 / 4) + 1, #left do redis.call('HDEL', KEYS[1], left[i].field) end
end
local ttl = math.ceil((forget(new) - now) / 1000)
if ttl > redis.call('PTTL', KEYS[1]) then redis.call('PEXPIRE', KEYS[1], ttl) end
return 'saved'
