-- Gives a list that was written piece by piece its name, unless what has the name is younger or not ours.
-- KEYS[1] the list  KEYS[2] what was written  ARGV[1] how long it is kept, milliseconds
local old, new = redis.pcall('GETRANGE', KEYS[1], 0, 24), redis.call('GETRANGE', KEYS[2], 0, 24)
local result = 'stored'
if #new < 25 then
  result = 'late'
elseif type(old) ~= 'string' or old ~= '' and not string.find(old, '^gww%d%d') then
  result = 'rubbish'
elseif string.sub(old, 4, 5) > string.sub(new, 4, 5) then
  result = 'newer_format'
elseif string.sub(old, 1, 5) == string.sub(new, 1, 5) and string.sub(old, 6) > string.sub(new, 6) then
  result = 'older'
end
if result == 'stored' then
  redis.call('RENAME', KEYS[2], KEYS[1])
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
else
  redis.call('DEL', KEYS[2])
end
return result
