-- Drops a book and notes since when copies of it may be kept again. Returns 1 if there was one.
-- KEYS[1] the book  KEYS[2] when it was purged  ARGV[1] how long ago it was purged when this was sent, microseconds
-- ARGV[2] how long a copy is kept, milliseconds: what is older than the note is too old to be kept anyway
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local at = now - tonumber(ARGV[1])
local before = tonumber(redis.pcall('GET', KEYS[2]))
if before and before > at and before <= now + 1000000 then at = before end
-- Not tostring: it writes 14 digits, and these are 16.
redis.call('SET', KEYS[2], string.format('%.0f', at), 'PX', ARGV[2])
return redis.call('DEL', KEYS[1])
