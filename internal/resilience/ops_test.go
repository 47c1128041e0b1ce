package resilience_test

import (
	"exchange-gateway/internal/ops"
	"exchange-gateway/internal/resilience"
)

// What the desk reads and does is what the guard offers.
var _ ops.Guard = (*resilience.Guard)(nil)
