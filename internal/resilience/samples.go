package resilience

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"exchange-gateway/internal/market"
)

// sampleLength is market.SampleLength in instants.
const sampleLength = int64(market.SampleLength)

// Latencies are counted in buckets whose upper edges grow by half, from 1 ms to 20 s: a quantile is at most half too
// high. The longest attempt by default is the 15 s of a listing; what takes longer than 20 s counts as that.
const (
	latencyBuckets = 26
	leastLatency   = int64(time.Millisecond)
	mostLatency    = int64(20 * time.Second)
)

// latencyEdge is the upper edge of a bucket.
func latencyEdge(i int) int64 {
	edge := leastLatency
	for range i {
		edge += edge / 2
	}
	return min(edge, mostLatency)
}

// latencyBucket is the bucket of a latency, the one above if it lies on an edge. It costs about as much as finding it in
// a table would, and needs none.
func latencyBucket(elapsed int64) int {
	i := 0
	for edge := leastLatency; edge < elapsed && i < latencyBuckets-1; i++ {
		edge += edge / 2
	}
	return i
}

// taken is what was counted up to an instant, or within one sample.
type taken struct {
	failures, refused, retries uint64
	latencies                  [latencyBuckets]uint64 // together they are the attempts
}

func (t *taken) since(before *taken) taken {
	d := taken{failures: t.failures - before.failures, refused: t.refused - before.refused, retries: t.retries - before.retries}
	for i := range d.latencies {
		d.latencies[i] = t.latencies[i] - before.latencies[i]
	}
	return d
}

// samples are the last five minutes of one exchange, in a ring. The counters only ever grow, so that counting is one
// atomic addition and nothing counted is lost; whoever first counts in a new sample books what the last one grew by.
// Readers take the difference too, and book nothing. The ring is 7 KiB an exchange, whatever it is asked.
type samples struct {
	failures, refused, retries atomic.Uint64
	latencies                  [latencyBuckets]atomic.Uint64

	ends atomic.Int64 // when the sample being filled ends

	mu     sync.Mutex
	head   int64 // the sample being filled: its beginning is head times sampleLength
	booked taken // what was counted before it
	ring   [market.Samples]sampled
}

// sampled is one sample that is over, in half the room.
type sampled struct {
	failures, refused, retries uint32
	latencies                  [latencyBuckets]uint32
}

func newSamples(now int64) *samples {
	s := &samples{head: now / sampleLength}
	s.ends.Store((s.head + 1) * sampleLength)
	return s
}

// attempt counts an attempt that ended.
func (s *samples) attempt(now, elapsed int64, failed bool) {
	s.roll(now)
	if failed {
		s.failures.Add(1)
	}
	s.latencies[latencyBucket(elapsed)].Add(1)
}

// refuse counts a call that was not sent.
func (s *samples) refuse(now int64) {
	s.roll(now)
	s.refused.Add(1)
}

// retry counts an attempt beyond the first of its call.
func (s *samples) retry(now int64) {
	s.roll(now)
	s.retries.Add(1)
}

// roll makes the sample of an instant the one that is filled.
func (s *samples) roll(now int64) {
	if now >= s.ends.Load() {
		s.book(now)
	}
}

// book closes the sample that is filled. What another goroutine counts in this very moment is in the next one.
func (s *samples) book(now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	to := now / sampleLength
	if to <= s.head {
		return
	}
	total := s.total()
	*s.at(s.head) = total.since(&s.booked).small()
	s.booked = total
	if to-s.head > market.Samples {
		s.head = to - market.Samples
	}
	for s.head++; s.head < to; s.head++ {
		*s.at(s.head) = sampled{}
	}
	s.ends.Store((to + 1) * sampleLength)
}

func (s *samples) at(i int64) *sampled { return &s.ring[i%market.Samples] }

func (s *samples) total() taken {
	t := taken{failures: s.failures.Load(), refused: s.refused.Load(), retries: s.retries.Load()}
	for i := range t.latencies {
		t.latencies[i] = s.latencies[i].Load()
	}
	return t
}

// read lists the samples up to an instant, oldest first; the newest is still being filled.
func (s *samples) read(now int64, clock instants) []market.Sample {
	out := make([]market.Sample, 0, market.Samples)
	s.mu.Lock()
	defer s.mu.Unlock()
	to := max(now/sampleLength, s.head)
	total := s.total()
	filling := total.since(&s.booked).small()
	first := to - market.Samples + 1
	began := clock.wall(first * sampleLength).Round(time.Millisecond)
	for i := first; i <= to; i++ {
		var of sampled
		switch {
		case i == s.head:
			of = filling
		case i < s.head && i > s.head-market.Samples:
			of = *s.at(i)
		}
		out = append(out, of.public(began.Add(time.Duration(i-first)*market.SampleLength)))
	}
	return out
}

// small is the sample in half the room: four billion calls in five seconds do not fit.
func (t taken) small() sampled {
	d := sampled{failures: uint32(t.failures), refused: uint32(t.refused), retries: uint32(t.retries)}
	for i, n := range t.latencies {
		d.latencies[i] = uint32(n)
	}
	return d
}

func (d *sampled) public(at time.Time) market.Sample {
	if *d == (sampled{}) {
		return market.Sample{At: at} // most are, of an exchange that is asked seldom
	}
	attempts := 0
	for _, n := range d.latencies {
		attempts += int(n)
	}
	return market.Sample{
		At: at, Attempts: attempts, Failures: int(d.failures), Refused: int(d.refused), Retries: int(d.retries),
		P50: d.quantile(attempts, 50), P99: d.quantile(attempts, 99),
	}
}

// quantile is the upper edge of the bucket in which a percentage of the attempts is reached, zero without an attempt.
func (d *sampled) quantile(attempts, percent int) time.Duration {
	rank := (attempts*percent + 99) / 100
	if rank == 0 {
		return 0
	}
	i := slices.IndexFunc(d.latencies[:], func(n uint32) bool {
		rank -= int(n)
		return rank <= 0
	})
	return time.Duration(latencyEdge(i))
}
