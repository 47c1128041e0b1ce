package attack

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/gobwas/ws"
)

const (
	maxAnswers = 10_000  // that are kept of one connection
	maxHeaders = 64      // that are kept of the first answer
	maxBody    = 4 << 20 // of one answer
)

// reader reads what comes back on one connection.
type reader struct {
	out       Outcome
	websocket bool
}

func (r *reader) readAll(c net.Conn) {
	in := bufio.NewReader(c)
	for len(r.out.Statuses) < maxAnswers {
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			r.out.End = endOf(err)
			return
		}
		body, err := io.ReadAll(io.LimitReader(res.Body, maxBody))
		r.answer(res, body)
		if err != nil {
			r.out.End = endOf(err)
			return
		}
		if r.websocket && res.StatusCode == http.StatusSwitchingProtocols {
			r.frames(in)
			return
		}
	}
	r.out.End = EndOpen
}

func (r *reader) answer(res *http.Response, body []byte) {
	if len(r.out.Statuses) == 0 {
		for name, values := range res.Header {
			for _, v := range values {
				if len(r.out.Headers) < maxHeaders {
					r.out.Headers = append(r.out.Headers, name+": "+v)
				}
			}
		}
	}
	r.out.Statuses = append(r.out.Statuses, res.StatusCode)
	r.out.Leak = r.out.Leak || leaks(body)
	if strings.HasPrefix(res.Header.Get("Content-Type"), "application/problem+json") {
		var p struct{ Code string }
		_ = json.Unmarshal(body, &p) // what is no JSON has no code, which the test finds out
		r.out.Codes = append(r.out.Codes, p.Code)
	}
}

// frames reads the server's frames until the connection ends.
func (r *reader) frames(in io.Reader) {
	for {
		h, err := ws.ReadHeader(in)
		if err != nil {
			r.out.End = endOf(err)
			return
		}
		if h.Length > maxBody {
			r.out.End = "a frame of over 4 MiB came"
			return
		}
		payload := make([]byte, h.Length)
		if _, err := io.ReadFull(in, payload); err != nil {
			r.out.End = endOf(err)
			return
		}
		if h.OpCode == ws.OpClose {
			code, _ := ws.ParseCloseFrameData(payload)
			r.out.Close = int(code)
			continue
		}
		if h.OpCode == ws.OpText {
			r.out.Frames++
			var m struct{ Type string }
			if json.Unmarshal(payload, &m) == nil && m.Type == "error" {
				r.out.Errors++
			}
		}
	}
}
