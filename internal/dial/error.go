package dial

import (
	"errors"
	"net"
	"slices"
	"strings"
	"syscall"
)

// Error is a name of which no address was reached.
type Error struct {
	address string
	tries   []try
}

// Error names each address that was tried and what came of it.
func (e *Error) Error() string {
	texts := make([]string, len(e.tries))
	for i, t := range e.tries {
		texts[i] = t.err.Error()
		if !strings.Contains(texts[i], t.address) {
			texts[i] = t.address + ": " + texts[i]
		}
	}
	return e.address + ": " + strings.Join(texts, "; ")
}

// Unwrap returns what came of each address.
func (e *Error) Unwrap() []error {
	all := make([]error, len(e.tries))
	for i, t := range e.tries {
		all[i] = t.err
	}
	return all
}

// Timeout tells whether every address was silent, as net.Error does.
func (e *Error) Timeout() bool {
	return !slices.ContainsFunc(e.tries, func(t try) bool {
		n, ok := errors.AsType[net.Error](t.err)
		return !ok || !n.Timeout()
	})
}

// Temporary is what net.Error asks for beside Timeout.
func (e *Error) Temporary() bool { return e.Timeout() }

var _ net.Error = (*Error)(nil)

// shortages are what the kernel answers when this machine, or what its administrator allows this process, has nothing left
// for one more connection: descriptors (of the process, of the machine), buffers, memory, local ports.
func shortages() []syscall.Errno {
	return []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.EADDRNOTAVAIL}
}

// Local tells whether an error is a shortage of this machine, which says nothing about the other end. Where several addresses
// were tried all of them have to have failed for that: an address of a family that this machine does not have is
// EADDRNOTAVAIL, too.
func Local(err error) bool {
	if err == nil {
		return false
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return len(e.tries) > 0 && !slices.ContainsFunc(e.tries, func(t try) bool { return !Local(t.err) })
	}
	// A lookup keeps nothing of its sockets' errors but their text.
	dns, lookup := errors.AsType[*net.DNSError](err)
	return slices.ContainsFunc(shortages(), func(short syscall.Errno) bool {
		return errors.Is(err, short) || lookup && strings.HasSuffix(dns.Err, ": "+short.Error())
	})
}
