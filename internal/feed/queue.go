package feed

import (
	"sync"
	"time"

	"exchange-gateway/internal/clock"
)

// rank is how urgent a question to the exchange is; smaller is sooner.
type rank uint8

const (
	rankCheck   rank = iota // a book that is live would become stale
	rankWatched             // a book that somebody waits for
	rankWanted              // any other book without a snapshot
	rankNext                // a book that is live on the connection that is being replaced
	rankRefresh             // a book that does not reach far enough any more
	rankCompare             // curiosity
)

// snapshot tells whether the answer is loaded into a book.
func (r rank) snapshot() bool { return r != rankCheck && r != rankCompare }

// job is one question by REST about a seat's book. A seat has at most one of each sort in the queue, so that is bounded by
// the books.
type job struct {
	seat   *seat
	rank   rank
	at     time.Time // not before
	queued time.Time
	probe  bool // asked in place of a ping: not needed once anything came
}

// queue is what an exchange is to be asked by REST for its streams, most urgent first. askers take from it.
type queue struct {
	woken chan struct{}

	mu        sync.Mutex
	jobs      []*job
	asking    int       // snapshots under way
	notBefore time.Time // the exchange, or what guards it, refuses until then
	lastDone  time.Time
	pace      time.Duration // between two snapshots while there are some to ask for, smoothed
}

func newQueue() *queue { return &queue{woken: make(chan struct{}, 1)} }

func (q *queue) push(j *job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if j.queued.IsZero() {
		j.queued = clock.Now()
	}
	if q.snapshots() == 0 && j.rank.snapshot() {
		q.lastDone = j.queued // the time without work says nothing about the pace
	}
	q.jobs = append(q.jobs, j)
	signal(q.woken)
}

// pop takes the most urgent job that is due; without one it returns how long until there may be one.
func (q *queue) pop() (*job, time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now, wait := clock.Now(), idleCheck
	if q.notBefore.After(now) {
		return nil, q.notBefore.Sub(now)
	}
	best := -1
	for i, j := range q.jobs {
		if j.at.After(now) {
			wait = min(wait, j.at.Sub(now))
			continue
		}
		if best < 0 || j.rank < q.jobs[best].rank || j.rank == q.jobs[best].rank && j.queued.Before(q.jobs[best].queued) {
			best = i
		}
	}
	if best < 0 {
		return nil, wait
	}
	j := q.jobs[best]
	last := len(q.jobs) - 1
	q.jobs[best], q.jobs[last] = q.jobs[last], nil
	q.jobs = q.jobs[:last]
	if j.rank.snapshot() {
		q.asking++
	}
	if last > 0 {
		signal(q.woken) // another asker may be free
	}
	return j, 0
}

// done ends a job; answered tells that the exchange gave a snapshot, which the pace is measured by.
func (q *queue) done(j *job, answered bool) {
	if !j.rank.snapshot() {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.asking--
	if !answered {
		return
	}
	now := clock.Now()
	took := now.Sub(q.lastDone)
	q.lastDone = now
	if q.pace == 0 {
		q.pace = took
	}
	q.pace += (took - q.pace) / 8
}

// hold keeps everything back for a while.
func (q *queue) hold(d time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.notBefore = later(q.notBefore, clock.Now().Add(d))
}

// resume ends hold.
func (q *queue) resume() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.notBefore = time.Time{}
	signal(q.woken)
}

// clear drops what nobody has begun to ask: the connections that it is for are over.
func (q *queue) clear() {
	q.mu.Lock()
	defer q.mu.Unlock()
	clear(q.jobs)
	q.jobs = q.jobs[:0]
}

func (q *queue) snapshots() int {
	n := q.asking
	for _, j := range q.jobs {
		if j.rank.snapshot() {
			n++
		}
	}
	return n
}

// status is how many snapshots are to come, and in how long at the pace measured.
func (q *queue) status() (queued int, eta time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	queued = q.snapshots()
	eta = time.Duration(queued) * q.pace
	if queued > 0 && eta > 0 {
		eta += max(clock.Until(q.notBefore), 0)
	}
	return queued, eta
}
