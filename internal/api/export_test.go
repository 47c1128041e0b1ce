package api

// AppendTime and AppendQuoted are tested against the standard library's own.
var (
	AppendTime   = appendTime
	AppendQuoted = appendQuoted
)
