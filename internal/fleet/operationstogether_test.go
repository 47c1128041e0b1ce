package fleet_test

import (
	"context"
	"net"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"exchange-gateway/internal/cache/redistest"
	"exchange-gateway/internal/fleet"
	"exchange-gateway/internal/market"
)

// hundreds are withholdings of as many pairs.
func hundreds(n int) (list []market.Override) {
	for i := range n {
		list = append(list, isolation(time.Hour, func(o *market.Override) {
			o.Kind, o.Pair = market.OverrideWithhold, market.Pair{Base: "C" + strconv.Itoa(1000+i), Quote: "USDT"}
		}))
	}
	return list
}

// TestOperations_savesTogetherWhatComesTogether: one write of each place, whatever is in it.
func TestOperations_savesTogetherWhatComesTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file, shared := &fakeStore{}, &fakeStore{}
		o := fleet.OperationsIn(quiet(), file, shared)
		defer closes(t, o)
		if places := o.Places(); !slices.Equal(places, []string{"state_dir", "redis"}) {
			t.Errorf("places = %q", places)
		}
		all := hundreds(600)
		where, err := o.Save(t.Context(), all...)
		if err != nil || !slices.Equal(where, o.Places()) {
			t.Errorf("saved in %q: %v", where, err)
		}
		inForce(t, o.InForce(), all...)
		for i := range all {
			all[i] = released(all[i])
		}
		where, err = o.Save(t.Context(), all...)
		if err != nil || !slices.Equal(where, o.Places()) {
			t.Errorf("released in %q: %v", where, err)
		}
		if file.puts != 2 || shared.puts != 2 || len(file.held) != 600 {
			t.Errorf("%d and %d writes, want one for each call; %d are held", file.puts, shared.puts, len(file.held))
		}
		inForce(t, o.InForce())
		if where, err := o.Save(t.Context()); len(where) > 0 || err != nil || file.puts != 2 {
			t.Errorf("nothing was saved in %q: %v", where, err)
		}
	})
}

// TestOperations_savesWhatIsRightOfAList: what is no override is refused, and holds nobody else's word up.
func TestOperations_savesWhatIsRightOfAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := &fakeStore{}
		o := fleet.OperationsIn(quiet(), file, &fakeStore{})
		defer closes(t, o)
		good := isolation(time.Hour)
		where, err := o.Save(t.Context(), market.Override{}, good)
		if err == nil || len(where) > 0 {
			t.Errorf("saved in %q: %v; want that one is refused", where, err)
		}
		inForce(t, o.InForce(), good)
		if len(file.held) != 1 {
			t.Errorf("%d are written down, want the one that is right", len(file.held))
		}
	})
}

// calls counts what goes to Redis.
type calls struct{ n atomic.Int64 }

func (c *calls) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (c *calls) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.n.Add(1)
		return next(ctx, cmd)
	}
}

func (c *calls) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// TestOperationsRedis_takesHundredsInOneCall, and another gateway reads them all.
func TestOperationsRedis_takesHundredsInOneCall(t *testing.T) {
	t.Parallel()
	server, counter := redistest.Start(t), &calls{}
	c := bounded(t, server)
	c.AddHook(counter)
	o := patient(fleet.OperationsConfig{Redis: c, Prefix: "gw", Instance: "a"})
	past(t, o)
	keep(t, o, isolation(time.Hour)) // Redis knows the script from now on
	before := counter.n.Load()
	all := hundreds(600)
	if where, err := o.Save(t.Context(), all...); err != nil || !slices.Equal(where, []string{"redis"}) {
		t.Errorf("saved in %q: %v", where, err)
	}
	if n := counter.n.Load() - before; n != 1 {
		t.Errorf("%d calls, want 1", n)
	}
	k := past(t, patient(fleet.OperationsConfig{Redis: bounded(t, server), Prefix: "gw", Instance: "b"}))
	if len(k.Overrides) != 601 {
		t.Errorf("another gateway reads %d, want 601", len(k.Overrides))
	}
}
