-- Stores a book if it is newer than the one that is stored: market.OrderBook.Compare, on Redis.
-- KEYS[1] the book  KEYS[2] when it was purged  ARGV[1] its value  ARGV[2] Redis' clock when it was encoded, microseconds
-- ARGV[3] how long a copy is kept, milliseconds  ARGV[4] how long a deeper copy stands, microseconds
-- The offsets are those of header.go, counted from one.
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local encoded = tonumber(ARGV[2])
-- A server that was stopped finds old commands in its buffers. What they say of an age is no longer true.
if now - encoded > 1000000 or encoded - now > 1000000 then return 'late' end

local new = ARGV[1]
local at = tonumber(string.sub(new, 7, 26))
local ttl = tonumber(ARGV[3]) - math.floor((now - at) / 1000)
if ttl <= 0 then return 'expired' end

-- Whoever vouched for it before the purge may have vouched for what was purged.
local purged = tonumber(redis.pcall('GET', KEYS[2]))
-- One that lies ahead is none of ours.
if purged and at <= purged and purged <= now + 1000000 then return 'purged' end

local function store(verdict)
  redis.call('SET', KEYS[1], new, 'PX', ttl)
  return verdict
end

local old = redis.pcall('GETRANGE', KEYS[1], 0, 114)
-- Another type under our name is rubbish and is replaced, as is anything that has no header of ours.
if type(old) ~= 'string' or not string.find(old, '^gwb%d%d') then return store('stored') end
local format = string.sub(old, 4, 5)
if format > string.sub(new, 4, 5) then return 'newer_format' end
if format < string.sub(new, 4, 5) or #old ~= 115 or not string.find(old, '^gwb%d+\n$') then return store('stored') end

local function compare(from, to)
  local a, b = string.sub(new, from, to), string.sub(old, from, to)
  if a > b then return 1 elseif a < b then return -1 end
  return 0
end
local function both(flag) return string.sub(new, flag, flag) == '1' and string.sub(old, flag, flag) == '1' end

local later = compare(7, 26)
local order
if both(47) then
  order = compare(48, 67)
  if order == 0 and both(68) then order = compare(69, 88) end
elseif both(68) then
  order = compare(69, 88)
else
  order = later
end

if order < 0 then
  -- Only a copy for which the exchange vouched later than for the stored one says that it started anew.
  if later <= 0 then return 'older' end
  -- Three in a row that span 2 s are a reset: olderToReset and resetSpan of rule.go.
  local refused = tonumber(string.sub(old, 6, 6))
  if refused == 0 then redis.call('SETRANGE', KEYS[1], 94, string.sub(new, 7, 26)) end
  if refused >= 2 and at - tonumber(string.sub(old, 95, 114)) >= 2000000 then return store('reset') end
  redis.call('SETRANGE', KEYS[1], 5, tostring(math.min(refused + 1, 2)))
  return 'older'
end
-- A copy that is as new or newer ends the row, also one that changes nothing else.
if string.sub(old, 6, 6) ~= '0' then redis.call('SETRANGE', KEYS[1], 5, '0') end

local less = compare(89, 93) < 0 and string.sub(new, 94, 94) ~= '1'
if order == 0 then
  if later <= 0 then return 'confirmed' end
  if less then
    -- The same version with fewer levels vouches for the deeper copy: only its clocks move.
    redis.call('SETRANGE', KEYS[1], 5, '0' .. string.sub(new, 7, 46))
    redis.call('PEXPIRE', KEYS[1], ttl)
    return 'confirmed'
  end
  return store('confirmed')
end
if less and now - tonumber(string.sub(old, 7, 26)) <= tonumber(ARGV[4]) then return 'shallower' end
return store('stored')
