package sandbox

import (
	"context"

	"soniq/internal/messaging/sms"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
)

// Config has the dependencies of a Service.
type Config struct {
	DB          *db.DB
	Clock       clock.Clock `wiring:"optional"`
	Numbers     Numbers
	Messages    Messages
	Callers     Callers
	Suspensions *SuspendedOrgs
	Calls       Calls
	Jobs        Jobs
	Data        Data
}

// Numbers converts a number as people write it to E.164. ok is false if it is not a number.
type Numbers interface {
	ParseNumber(ctx context.Context, org, text string) (e164 string, ok bool, err error)
}

// Messages stores an inbound message.
type Messages interface {
	Receive(ctx context.Context, in sms.Incoming) (sms.Message, error)
}

// Callers places a call of a simulated caller, and returns its id and the number called.
type Callers interface {
	Call(ctx context.Context, c SimulatedCall) (id, to string, err error)
}

// Calls ends the calls of an organisation, and returns their number once they are committed.
type Calls interface {
	EndOrg(ctx context.Context, org string) (ended int, err error)
}

// Jobs removes queued jobs of an organisation, cancels running ones, and returns how many still run.
type Jobs interface {
	StopJobs(ctx context.Context, org string) (running int, err error)
}

// Data removes data of an organisation that is not in its rows.
type Data interface {
	// RemoveFiles removes the files of an organisation.
	RemoveFiles(org string) error
	// RepairRows repairs rows that stay but refer to removed ones, in the transaction after the last removal. It returns
	// how many rows it removed.
	RepairRows(ctx context.Context, tx db.Querier, org string) (gone int64, err error)
	// ClearCaches clears the caches of an organisation.
	ClearCaches(org string)
}
