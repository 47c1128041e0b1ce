//go:build !unix

package keys

// lock does nothing where files cannot be locked like this: there, change the file by one program at a time.
func lock(string) (unlock func(), err error) { return func() {}, nil }

// tryLock does nothing either: of two gateways that write last uses at once, one is heard.
func tryLock(string) (unlock func(), err error) { return func() {}, nil }
