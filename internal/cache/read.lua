-- Returns Redis' clock and a value at one instant, so that the age of the value is known on one clock.
-- KEYS[1] the value  ARGV[1] the most bytes that are of use
local clock = redis.call('TIME')
local size = redis.pcall('STRLEN', KEYS[1])
-- Another type, or more than we ever write: rubbish, which is not worth carrying.
if type(size) ~= 'number' or size > tonumber(ARGV[1]) then return {clock[1], clock[2], '?'} end
return {clock[1], clock[2], redis.call('GET', KEYS[1])}
