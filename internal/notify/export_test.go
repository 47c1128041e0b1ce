package notify

// RetryAfter is the decoder of a receiver's header, for fuzzing.
var RetryAfter = retryAfter
