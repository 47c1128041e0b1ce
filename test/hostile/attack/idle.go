package attack

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"
)

// Idle is a crowd of connections that each have their first answer and then say nothing.
type Idle struct {
	Requests  int    // connections that asked once and were answered
	Request   []byte // what they ask, answered with 200
	Sockets   int    // WebSockets that subscribe to nothing
	Handshake []byte
}

// Crowd is how many of them stand.
type Crowd struct {
	Standing int
	Lost     int // were refused, or closed by the far end
	Files    int // the most files that this process may have open
	First    string
}

const (
	idleWorkers = 64
	idleBound   = 20 * time.Second // for one connection and its first answer, on a busy machine
	stillAsked  = 200              // connections of the crowd that ask again at its end
)

// stand opens the crowd, reports, waits until release returns, reports again and lets go.
func (i *Idle) stand(ctx context.Context, target string, release func(), out *json.Encoder) error {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return fmt.Errorf("limit of open files: %w", err)
	}
	crowd := Crowd{Files: int(files.Cur)}
	conns := make([]net.Conn, i.Requests+i.Sockets)
	defer func() {
		for _, c := range conns {
			if c != nil {
				_ = c.Close() // only read since its first answer
			}
		}
	}()
	crowd.Standing, crowd.First = i.open(ctx, target, conns)
	crowd.Lost = len(conns) - crowd.Standing
	if err := out.Encode(Report{Crowd: &crowd}); err != nil {
		return err
	}
	release()
	crowd.Standing, crowd.Lost = 0, 0
	for at := 0; at < i.Requests; at += max(1, i.Requests/stillAsked) {
		if c := conns[at]; c != nil && ask(c, i.Request, http.StatusOK) == nil {
			crowd.Standing++
		} else {
			crowd.Lost++
		}
	}
	return out.Encode(Report{Crowd: &crowd})
}

// open fills conns and tells how many it could, and why the first could not.
func (i *Idle) open(ctx context.Context, target string, conns []net.Conn) (standing int, first string) {
	next := make(chan int)
	var mu sync.Mutex
	var workers sync.WaitGroup
	for range idleWorkers {
		workers.Go(func() {
			for at := range next {
				c, err := i.enter(ctx, target, at < i.Requests)
				conns[at] = c
				mu.Lock()
				if err == nil {
					standing++
				} else if first == "" {
					first = err.Error()
				}
				mu.Unlock()
			}
		})
	}
	for at := range conns {
		if !pause(between, ctx.Done()) {
			break
		}
		next <- at
	}
	close(next)
	workers.Wait()
	return standing, first
}

func (i *Idle) enter(ctx context.Context, target string, asks bool) (net.Conn, error) {
	c, err := dial(ctx, target)
	if err != nil {
		return nil, err
	}
	hello, want := i.Request, http.StatusOK
	if !asks {
		hello, want = i.Handshake, http.StatusSwitchingProtocols
	}
	if err := ask(c, hello, want); err != nil {
		_ = c.Close() // it is of no use any more
		return nil, err
	}
	return c, nil
}

// ask sends a request and reads the answer, and nothing behind it.
func ask(c net.Conn, request []byte, want int) error {
	if err := c.SetDeadline(time.Now().Add(idleBound)); err != nil {
		return err
	}
	if _, err := c.Write(request); err != nil {
		return err
	}
	res, err := http.ReadResponse(bufio.NewReaderSize(c, 512), nil)
	if err != nil {
		return err
	}
	if res.StatusCode != want {
		return fmt.Errorf("%s", res.Status)
	}
	if want == http.StatusSwitchingProtocols {
		return nil
	}
	_, err = io.Copy(io.Discard, io.LimitReader(res.Body, maxBody))
	return err
}
