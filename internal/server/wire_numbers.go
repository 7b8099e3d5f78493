package server

import (
	"context"
	"net/http"
	"time"

	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/number"
	"soniq/internal/telephony/trunk"
)

// Connects numbers with their providers and with users.

// buildNumbers constructs the service of numbers.
func (p *Platform) buildNumbers(now func() time.Time) {
	telnyx := number.ProviderType{URL: trunk.TelnyxURL, Opener: telnyxAccounts{p.guard.Client(trunk.TelnyxLimits)}}
	p.numbers = number.New(number.Config{DB: p.db, Orgs: p.orgs, Outbox: p.outbox, Bus: p.bus, Clock: clock.Func(now),
		Trunks: p.trunks, Destinations: targets{p},
		Providers:        map[string]number.ProviderAPI{number.ProviderSandbox: trunk.NewSandboxMarket(now)},
		AccountProviders: map[string]number.ProviderType{"telnyx": telnyx},
		Seal:             p.seal, Guard: p.guard, Jobs: p.jobs, JobQueue: call.JobQueue})
	p.numbers.Observe(numberObserver{p})
}

// telnyxAccounts opens accounts at Telnyx.
type telnyxAccounts struct{ client *http.Client }

// Open implements number.Opener.
func (t telnyxAccounts) Open(c number.Credentials) number.ProviderAPI {
	return trunk.NewTelnyx(t.client, c)
}

// targets implements number.Destinations. It reads the services of the platform at each call, because they are built later.
type targets struct{ p *Platform }

// CheckTarget implements number.Destinations.
func (t targets) CheckTarget(ctx context.Context, org, to string) (string, error) {
	return t.p.checkDestination(ctx, org, to)
}

// numberObserver passes changes of numbers on to users.
type numberObserver struct{ p *Platform }

// NumberReleased removes a released number as the caller ID of users.
func (o numberObserver) NumberReleased(ctx context.Context, tx db.Querier, org, id string) error {
	return o.p.users.ClearOutboundNumber(ctx, tx, org, id)
}
