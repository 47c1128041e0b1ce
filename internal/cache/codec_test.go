package cache_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"exchange-gateway/internal/cache"
	"exchange-gateway/internal/market"
)

const redisNow = int64(1_796_000_000_000_000) // microseconds

// roundTrip writes the book when Redis' clock is redisNow and reads it when that clock is later by held.
func roundTrip(t *testing.T, b *market.OrderBook, age, held time.Duration) *market.OrderBook {
	t.Helper()
	value, err := cache.EncodeBook(b, redisNow-age.Microseconds())
	if err != nil {
		t.Fatal(err)
	}
	got, err := cache.DecodeBook(string(value), redisNow+held.Microseconds(), time.Now())
	if err != nil {
		t.Fatalf("%v:\n%s", err, value)
	}
	return got
}

func TestCodec_keepsEverything(t *testing.T) {
	numbers := []string{"64073.00", "0.58849577", "64072.90", "1000000000000000000.500", "0.00000001", "123456789012.00000001"}
	for name, b := range map[string]*market.OrderBook{
		"plain":        book(t),
		"all clocks":   book(t, stamped(venueTime), numbered(66813971942), changedAt(venueTime.Add(-time.Nanosecond))),
		"extremes":     book(t, numbered(-1<<63), stamped(time.Unix(0, -1)), asked(0)),
		"zero numbers": book(t, numbered(0), asked(5000)),
		"digits":       book(t, func(b *market.OrderBook) { b.Levels = levels(t, numbers, []string{"64073.10", "0.1"}) }),
		"one side":     book(t, func(b *market.OrderBook) { b.Levels = levels(t, numbers, nil) }),
		"empty":        book(t, func(b *market.OrderBook) { b.Levels = levels(t, nil, nil) }),
		"no symbol":    book(t, func(b *market.OrderBook) { b.Symbol = "" }),
		"other names": book(t, func(b *market.OrderBook) {
			b.Pair, b.Symbol = market.Pair{Base: "币安人生", Quote: "BTC-PERP"}, "币安人生BTC-PERP"
		}),
	} {
		t.Run(name, func(t *testing.T) {
			got := roundTrip(t, b, 3*time.Second, time.Second)
			if got.Exchange != b.Exchange || got.Pair != b.Pair || got.Symbol != b.Symbol || got.Depth != b.Depth ||
				got.Sequence != b.Sequence {
				t.Errorf("got %+v, want %+v", got, b)
			}
			if !got.ExchangeTime.Equal(b.ExchangeTime) || !got.ConfirmedAt.Equal(b.ConfirmedAt) || !got.ChangedAt.Equal(b.ChangedAt) {
				t.Errorf("clocks: got %v %v %v, want %v %v %v",
					got.ExchangeTime, got.ConfirmedAt, got.ChangedAt, b.ExchangeTime, b.ConfirmedAt, b.ChangedAt)
			}
			if diff := cmp.Diff(text(b), text(got)); diff != "" {
				t.Errorf("digits (-want +got):\n%s", diff)
			}
		})
	}
}

func changedAt(at time.Time) change { return func(b *market.OrderBook) { b.ChangedAt = at } }

func text(b *market.OrderBook) string {
	return string(b.AppendAsks(b.AppendBids(nil, 1<<20), 1<<20))
}

func TestCodec_aShortSideStaysWholeOrNot(t *testing.T) {
	// Asked for 3 levels, the exchange sent 3 bids, one of them of size zero: that side may have more.
	b := book(t, asked(3), func(b *market.OrderBook) {
		b.Levels = levels(t, []string{"10", "1", "9", "0", "8", "1"}, []string{"11", "1"})
	})
	got := roundTrip(t, b, 0, 0)
	for _, depth := range []int{1, 2, 3, 100} {
		if got.Complete(depth) != b.Complete(depth) {
			t.Errorf("depth %d: complete = %v, want %v", depth, got.Complete(depth), b.Complete(depth))
		}
	}
	if got.Zeros() != 1 {
		t.Errorf("zeros = %d, want 1", got.Zeros())
	}
}

func TestCodec_theAgeIsKnownOnOneClock(t *testing.T) {
	const second = time.Second
	// Our clock says that the book was confirmed a moment ago, Redis' that it is 90 s old: as from a machine whose clock
	// runs ahead of ours.
	got := roundTrip(t, book(t), 60*second, 30*second)
	if age, known := got.Age(time.Now()); !known || age < 90*second || age > 91*second {
		t.Errorf("age = %v, %v, want 90s", age, known)
	}
	// Nor does it matter that ours, or the other machine's, is an hour off.
	for _, off := range []time.Duration{time.Hour, -time.Hour} {
		got = roundTrip(t, book(t, ago(off)), second, second)
		if age, known := got.Age(time.Now()); !known || age < 2*second || age > 3*second {
			t.Errorf("confirmed %v before by our clock: age = %v, %v, want 2s", off, age, known)
		}
	}
	if got.Anchor.IsZero() {
		t.Error("no anchor: nobody can tell that it came from a shared store")
	}
}

func TestCodec_anAgeThatCannotBeKnownIsNoCopy(t *testing.T) {
	for name, c := range map[string]struct {
		book *market.OrderBook
		age  time.Duration
		want error
	}{
		"half a second ahead on redis' clock": {book(t), -500 * time.Millisecond, nil},
		"two seconds ahead on redis' clock":   {book(t), -2 * time.Second, cache.ErrUnaged},
		"two seconds ahead on ours":           {book(t, ago(-2*time.Second)), time.Second, nil},
		"fifty years old":                     {book(t), 50 * 365 * 24 * time.Hour, cache.ErrUnaged},
	} {
		value, err := cache.EncodeBook(c.book, redisNow-c.age.Microseconds())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := cache.DecodeBook(string(value), redisNow, time.Now()); !errors.Is(err, c.want) {
			t.Errorf("%s: err = %v, want %v", name, err, c.want)
		}
	}
}

func TestCodec_rubbishIsNoBook(t *testing.T) {
	value, err := cache.EncodeBook(book(t, stamped(venueTime), numbered(7)), redisNow)
	if err != nil {
		t.Fatal(err)
	}
	good := string(value)
	replace := func(at int, with string) string { return good[:at] + with + good[at+len(with):] }
	body := func(old, with string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("no %q in %q", old, good)
		}
		return strings.Replace(good, old, with, 1)
	}
	for name, c := range map[string]struct {
		value string
		want  error
	}{
		"empty":             {"", cache.ErrRubbish},
		"text":              {"hello", cache.ErrRubbish},
		"json":              {`{"bids":[["1","2"]]}`, cache.ErrRubbish},
		"older format":      {replace(3, "01"), cache.ErrRubbish},
		"newer format":      {replace(3, "03"), cache.ErrNewerFormat},
		"much newer":        {"gwb99 and then something else", cache.ErrNewerFormat},
		"no format":         {replace(3, "xx"), cache.ErrRubbish},
		"a flag of 2":       {replace(46, "2"), cache.ErrRubbish},
		"nine strikes":      {replace(5, "9"), cache.ErrRubbish},
		"a sign in a stamp": {replace(6, "-"), cache.ErrRubbish},
		"a huge ordinal":    {replace(26, "99999999999999999999"), cache.ErrRubbish},
		"cut":               {good[:len(good)-1], cache.ErrRubbish},
		"longer":            {good + "1 1\n", cache.ErrRubbish},
		"no pair":           {body("BTC/USDT", "BTCUSDT "), cache.ErrRubbish},
		"another spelling":  {body("BTC/USDT", "BTC-USDT"), cache.ErrRubbish},
		"too many counted":  {body("\n0\n1\n1\n", "\n0\n1\n99999999\n"), cache.ErrRubbish},
		"no number":         {body("64073.00", "64073,00"), cache.ErrRubbish},
		"crossed":           {body("64073.00", "99999.00"), cache.ErrRubbish},
		"negative":          {body("0.58849577", "-0.5884957"), cache.ErrRubbish},
		"zero":              {body("0.58849577", "0.00000000"), cache.ErrRubbish},
	} {
		if b, err := cache.DecodeBook(c.value, redisNow, time.Now()); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, %v, want %v", name, b, err, c.want)
		}
	}
}

func TestCodec_refusesWhatItCannotSpell(t *testing.T) {
	for name, b := range map[string]*market.OrderBook{
		"a line feed in a name":   book(t, func(b *market.OrderBook) { b.Symbol = "BTC\nUSDT" }),
		"a time before UnixNano":  book(t, stamped(time.Date(1, 2, 3, 0, 0, 0, 0, time.UTC))),
		"a change after UnixNano": book(t, changedAt(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC))),
		"a side of 20,001":        book(t, deep(t, 20_001)),
	} {
		if value, err := cache.EncodeBook(b, redisNow); err == nil {
			t.Errorf("%s: encoded as %.80q", name, value)
		}
	}
}

func listingsOf(rows ...market.Listing) *market.Listings {
	return &market.Listings{Exchange: "okx", Rows: rows, ConfirmedAt: time.Now()}
}

var btcListing = market.Listing{
	Exchange: "okx", Pair: btc, Symbol: "BTC-USDT", Status: market.TradingActive,
	PriceTick: market.Some(market.MustNumber("0.10")), MinSize: market.Some(market.MustNumber("0.00001")),
}

func TestListingsCodec_keepsEverything(t *testing.T) {
	l := listingsOf(btcListing, market.Listing{
		Exchange: "okx", Pair: market.Pair{Base: "BTC", Quote: "USDC"}, Symbol: "BTC-USDC", Status: market.TradingPaused,
		SizeStep: market.Some(market.MustNumber("1")), MinNotional: market.Some(market.MustNumber("5.00")), AliasOf: "BTC-USD",
	})
	value, err := cache.EncodeListings(l, redisNow)
	if err != nil {
		t.Fatal(err)
	}
	got, err := cache.DecodeListings(string(value), redisNow+90_000_000, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	same := cmp.Comparer(func(a, b market.Optional) bool {
		x, hasX := a.Get()
		y, hasY := b.Get()
		return hasX == hasY && x.String() == y.String()
	})
	if diff := cmp.Diff(l.Rows, got.Rows, same); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if age, _ := got.Age(time.Now()); age < 90*time.Second || age > 91*time.Second || !got.ConfirmedAt.Equal(l.ConfirmedAt) {
		t.Errorf("age = %v, confirmed %v", age, got.ConfirmedAt)
	}
	unknown := strings.Replace(string(value), "paused", "halted", 1)
	if got, err = cache.DecodeListings(unknown, redisNow, time.Now()); err != nil || got.Rows[1].Status != market.TradingPaused {
		t.Errorf("a status of a newer gateway: %v, %v, want paused", got, err)
	}
}

func FuzzDecodeBook(f *testing.F) {
	for _, b := range []*market.OrderBook{
		book(f), book(f, stamped(venueTime), numbered(1)), book(f, deep(f, 3), asked(0)),
	} {
		value, err := cache.EncodeBook(b, redisNow)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(value))
	}
	f.Add("gwb03")
	f.Fuzz(func(t *testing.T, value string) {
		b, err := cache.DecodeBook(value, redisNow, time.Now())
		if err != nil {
			return
		}
		again, err := cache.EncodeBook(b, redisNow)
		if err != nil {
			return // a number that its writer spelled shorter, or a name that is no line
		}
		back, err := cache.DecodeBook(string(again), redisNow, time.Now())
		if err != nil {
			t.Fatalf("what was written cannot be read: %v\n%q", err, again)
		}
		if !back.Levels.Equal(b.Levels) || back.Compare(b) != 0 || back.Complete(1) != b.Complete(1) {
			t.Fatalf("another book came back:\n%q\n%q", value, again)
		}
	})
}

func FuzzDecodeListings(f *testing.F) {
	value, err := cache.EncodeListings(listingsOf(btcListing), redisNow)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(value))
	f.Add("gwl02")
	f.Fuzz(func(t *testing.T, value string) {
		l, err := cache.DecodeListings(value, redisNow, time.Now())
		if err != nil {
			return
		}
		again, err := cache.EncodeListings(l, redisNow)
		if err != nil {
			return
		}
		if back, err := cache.DecodeListings(string(again), redisNow, time.Now()); err != nil || len(back.Rows) != len(l.Rows) {
			t.Fatalf("what was written cannot be read: %v\n%q", err, again)
		}
	})
}
