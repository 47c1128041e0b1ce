package app

import (
	"exchange-gateway/cmd/gateway/config"
	"exchange-gateway/internal/api/quota"
	"exchange-gateway/internal/ops"
)

// quotas are what a client may do for which the keys file says nothing. Of what all share one of them may have a quarter:
// requests in flight, and streams, which is the default of the quota.
func quotas(conf config.Config) quota.Limits {
	return quota.Limits{
		RequestsPerSecond: conf.ClientDefaults.RequestsPerSecond, UpstreamPerMinute: conf.ClientDefaults.UpstreamPerMinute,
		InFlight: max(1, conf.InFlight/4),
	}
}

// clientsUse is what clients do, as the board shows it.
type clientsUse struct{ clients *quota.Clients }

// Top implements ops.Clients.
func (c clientsUse) Top(n int) []ops.ClientUse {
	top := c.clients.Top(n)
	all := make([]ops.ClientUse, len(top))
	for i, u := range top {
		all[i] = ops.ClientUse(u)
	}
	return all
}
