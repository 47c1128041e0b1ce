package stream_test

import (
	"bufio"
	"net/http"
	"strings"
	"testing"
)

// event is one of server-sent events.
type event struct{ id, kind, data, retry string }

// eventReader reads what a browser's EventSource would.
type eventReader struct {
	t  testing.TB
	in *bufio.Scanner
}

func events(t testing.TB, res *http.Response) *eventReader {
	s := bufio.NewScanner(res.Body)
	s.Buffer(nil, 1<<20)
	return &eventReader{t, s}
}

// next is the next event; ok is false at the end.
func (r *eventReader) next() (e event, ok bool) {
	r.t.Helper()
	for r.in.Scan() {
		line := r.in.Text()
		if line == "" {
			return e, true
		}
		field, value, found := strings.Cut(line, ": ")
		if !found {
			r.t.Fatalf("line %q", line)
		}
		switch field {
		case "id":
			e.id = value
		case "event":
			e.kind = value
		case "data":
			e.data = value
		case "retry":
			e.retry = value
		default:
			r.t.Fatalf("line %q", line)
		}
	}
	return e, false
}

func (r *eventReader) expect(kinds ...string) (all []event) {
	r.t.Helper()
	for _, want := range kinds {
		e, ok := r.next()
		if !ok || e.kind != want {
			r.t.Fatalf("got %+v, want %s", e, want)
		}
		if m := parse(r.t, e.data); m.Type != want {
			r.t.Errorf("event %s of %s", want, e.data)
		}
		all = append(all, e)
	}
	return all
}

// begin reads what comes before the first event.
func (r *eventReader) begin() *eventReader {
	r.t.Helper()
	if e, ok := r.next(); !ok || e != (event{retry: "1000"}) {
		r.t.Fatalf("first %+v", e)
	}
	return r
}

func TestEvents_areTheMessagesOfOneBook(t *testing.T) {
	r := newRig(t)
	res := r.get(t, "5", "")
	for name, want := range map[string]string{
		"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "X-Accel-Buffering": "no",
	} {
		if got := res.Header.Get(name); got != want || res.StatusCode != http.StatusOK {
			t.Errorf("%s: %s: %q, want %q", res.Status, name, got, want)
		}
	}
	in := events(t, res).begin()
	all := in.expect("status", "snapshot")
	if all[0].id != "" || all[1].id == "" {
		t.Errorf("ids %+v: a status is no version of the book", all)
	}
	r.feed.change(42)
	update := in.expect("update")[0]
	if update.id == all[1].id || !strings.Contains(update.data, `["64000.00","0.42"]`) {
		t.Errorf("update %+v", update)
	}
	if r.clients("sse") != 1 {
		t.Errorf("clients: %d", r.clients("sse"))
	}

	// Whoever has the current version gets no snapshot; whoever has another gets one.
	same := events(t, r.get(t, "5", update.id)).begin()
	same.expect("status")
	other := events(t, r.get(t, "5", all[1].id)).begin()
	if got := other.expect("status", "snapshot")[1]; got.id != update.id {
		t.Errorf("id %q, want %q", got.id, update.id)
	}
	events(t, r.get(t, "5", "nonsense")).begin().expect("status", "snapshot")
	events(t, r.get(t, "20", update.id)).begin().expect("status", "snapshot") // of another topic
	r.feed.change(43)
	if next := same.expect("update")[0]; !strings.Contains(next.data, `"prev_seq":2,`) {
		t.Errorf("after a resumption: %+v", next)
	}
}

func TestEvents_theClientLeaves(t *testing.T) {
	r := newRig(t)
	res := r.get(t, "5", "")
	events(t, res).begin().expect("status", "snapshot")
	_ = res.Body.Close()
	until(t, "it is given back", func() bool {
		watched, released := r.feed.counts()
		return watched == 1 && released == 1 && r.clients("sse") == 0 && r.ended("sse", "client") == 1
	})
}

func TestEvents_refusedBeforeTheFirst(t *testing.T) {
	r := newRig(t)
	res := r.get(t, "7", "")
	if res.StatusCode != http.StatusTeapot || r.clients("sse") != 0 {
		t.Errorf("%s, %d clients", res.Status, r.clients("sse"))
	}
	if got := res.Header.Get("Content-Type"); strings.Contains(got, "event-stream") {
		t.Errorf("Content-Type %q", got)
	}
}
