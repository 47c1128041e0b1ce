package hostile_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// cpu is how much processor time was used since the machine started, in ticks of the kernel.
type cpu struct {
	all  int // that there was
	busy int // of it by anybody
	ours int // of that by the processes of this test that run, and by those that have ended
}

// measure reads what /proc tells. Where there is none, all of it is zero, and nobody else works on the machine.
func (s *stage) measure() (c cpu) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return c
	}
	line, _, _ := strings.Cut(string(text), "\n") // "cpu user nice system idle iowait irq softirq steal guest guest_nice"
	for i, field := range strings.Fields(line) {
		n, err := strconv.Atoi(field)
		if err != nil || i > 8 { // the name; what guests use is in user already
			continue
		}
		c.all += n
		if i <= 3 || i == 8 { // neither idle nor what the kernel does for the connections of this test
			c.busy += n
		}
	}
	for _, pid := range append(s.pids(), os.Getpid()) {
		c.ours += ticks(pid)
	}
	return c
}

// foreign is how much of the machine went to processes of others since an earlier measure, in percent.
func (c cpu) foreign(since cpu) int {
	return max(0, (c.busy-since.busy)-(c.ours-since.ours)) * 100 / max(1, c.all-since.all)
}

// ticks is what a process used, with the children that it has waited for.
func ticks(pid int) (n int) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0 // it has ended, and this process has waited for it
	}
	_, rest, _ := strings.Cut(string(text), ") ") // the name may have spaces
	fields := strings.Fields(rest)
	for _, i := range []int{11, 12, 13, 14} { // utime, stime, cutime, cstime
		if v, err := strconv.Atoi(fields[i]); err == nil {
			n += v
		}
	}
	return n
}
