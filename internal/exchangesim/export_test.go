package exchangesim

// What the tests outside need of the inside.
var (
	HMACSHA256 = hmacSHA256
	TrimLevels = trimLevels
)
