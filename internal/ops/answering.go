package ops

import "exchange-gateway/internal/market"

// allErrors is from how many answers on their all being errors says that an exchange does not answer.
const allErrors = 5

// fewOf is how many answers one that is stale or an error may be among without a word: of a thousand that a minute brings, one may
// always come late. The alert on refused books has the same bound.
const fewOf = 100

// answering is what clients get, of the answers that they got and of those that they would get.
func (v *view) answering() AnsweringStatus {
	l := &v.lately
	answers, pairs, balances := l.Live+l.Stale+l.Errors, l.Pairs.Live+l.Pairs.Stale+l.Pairs.None, v.balancesRefused()
	switch {
	case pairs > 0 && l.Pairs.None == pairs,
		answers >= allErrors && l.Errors == answers,
		pairs == 0 && balances && l.Errors == answers:
		return AnsweringNone
	case (l.Stale+l.Errors)*fewOf > answers, l.Pairs.Stale+l.Pairs.None > 0, balances:
		return AnsweringSome
	case l.Wanted+l.Pairs.Wanted > 0:
		return AnsweringWanted
	case answers+pairs == 0 && !l.Balances:
		return AnsweringNotAsked
	}
	return AnsweringLive
}

// balancesRefused tells that somebody asked for a balance lately and would get none now, which nobody wanted. Which account it
// was does not matter: where an API family has a circuit of its own, another may be answered.
func (v *view) balancesRefused() bool {
	worst, isolated := v.class(market.ClassAccount)
	return v.lately.Balances && !isolated && (worst != market.CircuitClosed || v.ban() != nil)
}

// answersLevel is how bad it is what clients get.
func (v *view) answersLevel() Level {
	switch v.answers {
	case AnsweringNone:
		return LevelDown
	case AnsweringSome:
		return LevelDegraded
	case AnsweringWanted, AnsweringNotAsked, AnsweringLive:
	}
	return LevelOK
}

// unasked tells that nobody asks.
func (v *view) unasked() bool { return v.answers == AnsweringNotAsked }

func (v *view) answeringRow() Answering {
	l := &v.lately
	return Answering{
		Status: v.answers, AskedAt: instant(l.AskedAt), Live: l.Live, Stale: l.Stale, Errors: l.Errors, Wanted: l.Wanted,
		Pairs: AnsweringPairs(l.Pairs),
	}
}
