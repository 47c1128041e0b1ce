package resilience

import "exchange-gateway/internal/market"

// bill is what one attempt costs the client on whose behalf it is made. What is reserved is told at once, so that a client
// cannot begin a crowd of calls before the first is paid; what the requests cost in the end is put right as soon as that is
// known. Its numbers are covered by the attempt's lock; a client is told outside of it.
type bill struct {
	client market.Client // nil: nobody pays
	told   int           // units that the client has heard of
	spent  int           // units of the requests that were sent
}

// weight is what a call or request costs a client: units of its dearest limit. The limits of one exchange count the same
// requests in different ways, so their sum would count them twice.
func weight(costs []market.Charge) (units int) {
	for _, c := range costs {
		units = max(units, c.Weight)
	}
	return units
}

// name is the client's, "" without one.
func (b *bill) name() string {
	if b.client == nil {
		return ""
	}
	return b.client.Name()
}

// reserve tells what was reserved. It is for the attempt's beginning, when nobody else has it.
func (b *bill) reserve(units int) {
	b.told += units
	b.tell(units)
}

// add counts a request, and returns what exceeds all that was told.
func (b *bill) add(units int) int {
	b.spent += units
	more := max(b.spent-b.told, 0)
	b.told += more
	return more
}

// settle returns what the requests cost more or less than was told.
func (b *bill) settle() int {
	units := b.spent - b.told
	b.told = b.spent
	return units
}

func (b *bill) tell(units int) {
	if b.client != nil && units != 0 {
		b.client.Spend(units)
	}
}
