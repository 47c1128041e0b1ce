-- Returns Redis' clock and all gates at one instant.
-- KEYS[1] all gates  ARGV[1] the most fields that are of use
local clock = redis.call('TIME')
local size = redis.pcall('HLEN', KEYS[1])
if type(size) ~= 'number' or size > tonumber(ARGV[1]) then return {clock[1], clock[2], {'?'}} end
return {clock[1], clock[2], redis.call('HGETALL', KEYS[1])}
