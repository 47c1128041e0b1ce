package redistest_test

import (
	"net"
	"testing"
	"time"

	"exchange-gateway/internal/cache/redistest"
)

// answers tells whether a server answers within a time: a short one where silence is expected.
func answers(t *testing.T, addr string, within time.Duration) bool {
	t.Helper()
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return false
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(within))
	if _, err := c.Write([]byte("PING\r\n")); err != nil {
		return false
	}
	n, err := c.Read(make([]byte, 16))
	return err == nil && n > 0
}

func TestServer_breaksAndComesBackEmpty(t *testing.T) {
	s := redistest.Start(t)
	s.Do("SET", "k", "v")
	if got := s.Do("STRLEN", "k"); got != "1" {
		t.Fatalf("strlen = %s, want 1", got)
	}
	s.Freeze()
	if answers(t, s.Addr(), 100*time.Millisecond) {
		t.Error("a frozen server answers")
	}
	s.Thaw()
	if !answers(t, s.Addr(), 10*time.Second) {
		t.Error("a thawed server does not answer")
	}
	s.Kill()
	if answers(t, s.Addr(), 100*time.Millisecond) {
		t.Error("a killed server answers")
	}
	s.Restart()
	if got := s.Do("STRLEN", "k"); got != "0" {
		t.Errorf("strlen after a restart = %s, want 0: nothing is persistent", got)
	}
}
