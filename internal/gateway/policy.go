package gateway

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Question is what a caller wants to know. It is a metric label.
type Question string

// The closed set of questions.
const (
	QuestionBook       Question = "order_book"
	QuestionStatistics Question = "statistics"
	QuestionListings   Question = "listings"
	QuestionBalances   Question = "balances"
	QuestionPrice      Question = "price"
	QuestionNative     Question = "native" // one in an exchange's own form
)

// Step is one way to come by an answer.
type Step uint8

// The steps.
const (
	StepLocal     Step = iota // the book that a stream keeps, while the exchange vouches for it
	StepFreshCopy             // a copy no older than Rule.FreshFor
	StepAsk                   // a call to the exchange, through everything that protects it
	StepLastKnown             // the newer of the copies in memory and in the shared store, labelled
	StepVenues                // each exchange in the caller's order, by the rule of its order book
)

// text is how the README names a step, within its rule.
func (s Step) text(r Rule) string {
	switch s {
	case StepLocal:
		return "live local book of the stream"
	case StepFreshCopy:
		return "copy of at most " + short(r.FreshFor)
	case StepAsk:
		return "REST through Guard"
	case StepLastKnown:
		return "last-known copy"
	case StepVenues:
		return "the asked exchanges in the caller's order"
	}
	return "?"
}

// Rule is one row of the policy: who may answer a question, in which order, and how old an answer may be. The code reads
// the durations and walks Steps (those of statistics run beside the book's, so their order is written out in inquire and
// answer). The texts beside them are the row's words in the README.
type Rule struct {
	Question  Question
	Endpoints []string // of an exchange's own, where the row is about some of these; by the adapter's names
	Names     bool     // what is answered is a list of names, which holds no price: nothing withholds or purges it
	Asked     string   // in words
	Steps     []Step
	FreshFor  time.Duration // a copy this young is live; 0 where there are no copies
	StaleFor  time.Duration // an older copy is never served; 0 where none ever is
	Stale     string        // what a stale answer is like
	Failing   string        // what is answered when the exchange fails
	Why       string        // the reason for the row
}

// Policy is who may answer what.
type Policy struct {
	Book       Rule
	Statistics Rule
	Listings   Rule
	Balances   Rule
	Price      Rule

	// The rows of questions in an exchange's own form: prices, lists of names, and everything else.
	NativePrices Rule
	NativeNames  Rule
	Native       Rule
}

// native is the row of an endpoint.
func (p *Policy) native(endpoint string) *Rule {
	for _, r := range []*Rule{&p.NativePrices, &p.NativeNames} {
		if slices.Contains(r.Endpoints, endpoint) {
			return r
		}
	}
	return &p.Native
}

// DefaultPolicy is the policy. The durations of Book can be configured, and with them those of NativePrices.
func DefaultPolicy() Policy {
	return Policy{
		Book: Rule{
			Question: QuestionBook,
			Asked:    "order book; bid, ask, mid, spread",
			Steps:    []Step{StepLocal, StepFreshCopy, StepAsk, StepLastKnown},
			FreshFor: time.Second,
			StaleFor: time.Hour,
			Stale:    "labelled, up to the caller's `max_age_ms` and `stale_max_age`",
			Failing: "a stale book (200); `book_too_stale` if the copy fails the bound; the exchange's own error if " +
				"there is no copy",
			Why: "an old book with its true age is still worth something, and only its reader knows how old is too old",
		},
		Statistics: Rule{
			Question: QuestionStatistics,
			Asked:    "24 h statistics",
			Steps:    []Step{StepFreshCopy, StepAsk, StepLastKnown},
			FreshFor: 10 * time.Second,
			StaleFor: time.Hour,
			Stale:    "by their own `stats_freshness`",
			Failing:  "`null`; the rest of the ticker still answers",
			Why:      "figures of a whole day move slowly, and nobody should lose a bid and ask for want of them",
		},
		Listings: Rule{
			Question: QuestionListings,
			Asked:    "listings",
			Steps:    []Step{StepFreshCopy, StepAsk, StepLastKnown},
			FreshFor: time.Hour,
			StaleFor: 24 * time.Hour,
			Stale:    "labelled; the names of pairs themselves never expire",
			Failing:  "the stale list; `markets_unavailable` without one",
			Why:      "ticks and lots change by the day, and a name that was right keeps a book findable in an outage",
		},
		Balances: Rule{
			Question: QuestionBalances,
			Asked:    "balances",
			Steps:    []Step{StepAsk},
			Stale:    "**never**",
			Failing:  "an error with `Retry-After` and no numbers",
			Why:      "money is spent on the strength of a balance: no answer does less harm than an old one",
		},
		Price: Rule{
			Question: QuestionPrice,
			Asked:    "`/v1/price`",
			Steps:    []Step{StepVenues},
			Stale:    "without `max_age_ms` never; with it, if no exchange is live, the first within that age",
			Failing:  "names who answered, `fallback: true` if not the first, and why the others did not",
			Why:      "a price of another exchange is another price: the caller chose the order and has to see it used",
		},
		NativePrices: Rule{
			Question:  QuestionNative,
			Endpoints: []string{"ticker/price", "ticker/bookTicker", "ticker/24hr"},
			Asked:     "in the exchange's own form: prices (`ticker/price`, `ticker/bookTicker`, `ticker/24hr`)",
			Steps:     []Step{StepFreshCopy, StepAsk, StepLastKnown},
			FreshFor:  time.Second,
			StaleFor:  time.Hour,
			Stale:     "labelled in headers, only within an age that the caller's key allows",
			Failing:   "the exchange's own error",
			Why: "many bots ask for all pairs at once, the dearest question there is; and a bot that speaks the exchange's " +
				"dialect looks for no label",
		},
		NativeNames: Rule{
			Question:  QuestionNative,
			Endpoints: []string{"exchangeInfo"},
			Names:     true,
			Asked:     "in the exchange's own form: its list of pairs (`exchangeInfo`)",
			Steps:     []Step{StepFreshCopy, StepAsk, StepLastKnown},
			FreshFor:  time.Hour,
			StaleFor:  24 * time.Hour,
			Stale:     "labelled in headers",
			Failing:   "the stale list; the exchange's own error without one",
			Why:       "every bot asks for it when it starts, it is megabytes, and names were right yesterday",
		},
		Native: Rule{
			Question: QuestionNative,
			Asked:    "in the exchange's own form: everything else",
			Steps:    []Step{StepAsk},
			Stale:    "**never**",
			Failing:  "the exchange's own error",
			Why:      "its parameters are without number, so a copy would seldom be asked for again",
		},
	}
}

// Rules lists the rows.
func (p Policy) Rules() []Rule {
	return []Rule{
		p.Book, p.Statistics, p.Listings, p.Balances, p.Price, p.NativePrices, p.NativeNames, p.Native,
	}
}

// PolicyTable is the policy as the README shows it, in Markdown.
func PolicyTable() string {
	var b strings.Builder
	b.WriteString("| question | sources, in order | stale | when the exchange fails | why |\n|---|---|---|---|---|\n")
	for _, r := range DefaultPolicy().Rules() {
		steps := make([]string, len(r.Steps))
		for i, s := range r.Steps {
			steps[i] = s.text(r)
		}
		stale := r.Stale
		if r.StaleFor > 0 {
			stale += ", at most " + short(r.StaleFor)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", r.Asked, strings.Join(steps, " -> "), stale, r.Failing, r.Why)
	}
	return b.String()
}

// short is a whole number of hours or seconds as people write it.
func short(d time.Duration) string {
	if d >= time.Hour && d%time.Hour == 0 {
		return fmt.Sprintf("%d h", d/time.Hour)
	}
	return fmt.Sprintf("%d s", d/time.Second)
}
