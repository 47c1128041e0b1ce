package machine

import (
	"syscall"
	"unsafe"
)

// Clocks of clock_gettime(2). Go's monotonic reading is the first.
const (
	clockMonotonic = 1
	clockBoottime  = 7
)

// read is by how much the clock that counts suspensions is ahead of the one that does not, in nanoseconds. It is too small by
// the moment between reading one and the other.
func read() int64 {
	boot, ok := gettime(clockBoottime)
	if !ok {
		return 0
	}
	monotonic, _ := gettime(clockMonotonic)
	return boot - monotonic
}

func gettime(id uintptr) (int64, bool) {
	var t syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, id, uintptr(unsafe.Pointer(&t)), 0)
	return t.Nano(), errno == 0
}
