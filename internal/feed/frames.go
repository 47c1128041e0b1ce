package feed

import "time"

// framesKept is for how many seconds back the times of frames are known: longer than any exchange's VouchFor.
const framesKept = 128

// frames remembers when frames of a connection came: the last one exactly, and of each second before the last one in it.
// So the frame that it names for a moment is never later than the truth, and at most a second and a frame earlier.
type frames struct {
	began time.Time
	last  time.Duration // since began; zero: none came
	ring  [framesKept]time.Duration
}

func (f *frames) note(at time.Time) {
	t := at.Sub(f.began)
	if t <= f.last {
		return
	}
	f.last = t
	f.ring[second(t)%framesKept] = t
}

func second(t time.Duration) int64 { return int64(t / time.Second) }

// latest is the last frame that came at limit or before, as far as is known.
func (f *frames) latest(limit time.Time) (time.Time, bool) {
	most := limit.Sub(f.began)
	switch {
	case f.last == 0 || most <= 0:
		return time.Time{}, false
	case f.last <= most:
		return f.began.Add(f.last), true
	}
	for s := second(most); s >= 0 && s > second(f.last)-framesKept; s-- {
		if t := f.ring[s%framesKept]; t > 0 && second(t) == s && t <= most {
			return f.began.Add(t), true
		}
	}
	return time.Time{}, false
}
