-- Stores a list of pairs if the exchange vouched for it later than for the one that is stored.
-- KEYS[1] the list  ARGV[1] its value  ARGV[2] Redis' clock when it was encoded, microseconds
-- ARGV[3] how long a copy is kept, milliseconds
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local encoded = tonumber(ARGV[2])
if now - encoded > 1000000 or encoded - now > 1000000 then return 'late' end

local new = ARGV[1]
local ttl = tonumber(ARGV[3]) - math.floor((now - tonumber(string.sub(new, 6, 25))) / 1000)
if ttl <= 0 then return 'expired' end

local old = redis.pcall('GETRANGE', KEYS[1], 0, 24)
if type(old) == 'string' and string.find(old, '^gwl%d%d') then
  local format = string.sub(old, 4, 5)
  if format > string.sub(new, 4, 5) then return 'newer_format' end
  if format == string.sub(new, 4, 5) and #old == 25 and string.find(old, '^gwl%d+$') then
    if string.sub(old, 6, 25) > string.sub(new, 6, 25) then return 'older' end
    if string.sub(old, 6, 25) == string.sub(new, 6, 25) then return 'confirmed' end
  end
end
redis.call('SET', KEYS[1], new, 'PX', ttl)
return 'stored'
