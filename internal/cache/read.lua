-- Returns Redis' clock and a value at one instant, so that the age of the value is known on one clock.
-- KEYS[1] the value  KEYS[2] when it was purged, of a book  ARGV[1] the most bytes that are of use
local clock = redis.call('TIME')
local purged = KEYS[2] and redis.pcall('GET', KEYS[2]) or false
if type(purged) ~= 'string' then purged = false end
local size = redis.pcall('STRLEN', KEYS[1])
-- Another type, or more than we ever write: rubbish, which is not worth carrying.
if type(size) ~= 'number' or size > tonumber(ARGV[1]) then return {clock[1], clock[2], '?', purged} end
return {clock[1], clock[2], redis.call('GET', KEYS[1]), purged}
