-- Adds lines to a history.
-- KEYS[1] a list, oldest first  ARGV[1] the most lines that are kept  ARGV[2] milliseconds until it is forgotten
-- ARGV[3] the line that a history begins with  ARGV[4] the line that tells of a gap, or nothing; then the lines
local kind = redis.call('TYPE', KEYS[1]).ok
-- Another type under our name is rubbish.
if kind ~= 'list' and kind ~= 'none' then redis.call('DEL', KEYS[1]); kind = 'none' end
if ARGV[4] ~= '' then redis.call('RPUSH', KEYS[1], ARGV[4])
elseif kind == 'none' then redis.call('RPUSH', KEYS[1], ARGV[3]) end
for i = 5, #ARGV do redis.call('RPUSH', KEYS[1], ARGV[i]) end
redis.call('LTRIM', KEYS[1], -tonumber(ARGV[1]), -1)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 'kept'
