package resilience

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Whatever counts while samples end and are read, every count is in exactly one of them.
func TestSamples_loseNothing(t *testing.T) {
	clock := newInstants()
	s := newSamples(clock.now())
	// Each goroutine has a clock of its own that runs through 40 samples, so that they disagree on which one is filled.
	const goroutines, each, step = 8, 4000, 40 * sampleLength / 4000
	start := clock.now()
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for i := range int64(each) {
				now := start + i*step
				s.attempt(now, i%100*leastLatency, i%2 == 0)
				s.refuse(now)
				s.retry(now)
				if i%500 == 0 {
					s.read(now, clock)
				}
			}
		})
	}
	all.Wait()
	var attempts, failures, refused, retries int
	for _, one := range s.read(start+41*sampleLength, clock) {
		attempts += one.Attempts
		failures += one.Failures
		refused += one.Refused
		retries += one.Retries
	}
	const total = goroutines * each
	if attempts != total || failures != total/2 || refused != total || retries != total {
		t.Fatalf("%d attempts, %d failures, %d refused, %d retries, want %d, half of it, and %d twice",
			attempts, failures, refused, retries, total, total)
	}
}

// A sample is over when its time is, whoever counts next and however long nobody did.
func TestSamples_gaps(t *testing.T) {
	for _, gap := range []int64{1, 2, 58, 59, 60, 61, 600} {
		synctest.Test(t, func(t *testing.T) {
			clock := newInstants()
			s := newSamples(clock.now())
			count := func(n int) {
				for range n {
					s.refuse(clock.now())
				}
			}
			count(3)
			time.Sleep(time.Duration(gap * sampleLength))
			want := map[int64]int{gap: 3}
			check := func() {
				t.Helper()
				for i, one := range s.read(clock.now(), clock) {
					if ago := int64(59 - i); one.Refused != want[ago] {
						t.Fatalf("gap %d: %d samples ago %d, want %d", gap, ago, one.Refused, want[ago])
					}
				}
			}
			check()
			count(5)
			want[0] = 5
			check()
			time.Sleep(time.Duration(sampleLength))
			want = map[int64]int{gap + 1: 3, 1: 5}
			check()
			count(1)
			want[0] = 1
			check()
		})
	}
}

func TestLatencyBuckets(t *testing.T) {
	last := int64(0)
	for i := range latencyBuckets {
		edge := latencyEdge(i)
		if edge <= last || i > 0 && i < latencyBuckets-1 && edge != last+last/2 {
			t.Fatalf("edge %d is %v after %v", i, time.Duration(edge), time.Duration(last))
		}
		if got := latencyBucket(edge); got != i {
			t.Fatalf("%v is in bucket %d, want %d", time.Duration(edge), got, i)
		}
		if got := latencyBucket(edge + 1); got != min(i+1, latencyBuckets-1) {
			t.Fatalf("just above %v is in bucket %d", time.Duration(edge), got)
		}
		last = edge
	}
	if last != mostLatency || latencyBucket(0) != 0 || latencyBucket(int64(time.Hour)) != latencyBuckets-1 {
		t.Fatalf("the buckets end at %v", time.Duration(last))
	}
}

func TestHour_packs(t *testing.T) {
	for _, h := range []hour{
		{},
		{number: 1<<hourBits - 1},
		{row: 1<<rowBits - 1},
		{failures: wholes},
		{slow: wholes},
		{number: 12345, row: 54321, failures: 9999, slow: 1},
	} {
		if got := unpackHour(h.pack()); got != h {
			t.Errorf("%+v comes back as %+v", h, got)
		}
	}
}
