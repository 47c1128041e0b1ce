//go:build unix

package app

import "syscall"

// descriptors is how many descriptors this process may have; 0 if there is no limit or nobody knows. The Go runtime has raised
// the soft limit to the hard one by then.
func descriptors() uint64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return uint64(limit.Cur) // FreeBSD has a signed one
}
