// Package mailbox records the messages of callers, and plays them to users by telephone.
package mailbox

import (
	"context"
	"log/slog"

	"soniq/internal/contactcenter/flow"
	"soniq/internal/contactcenter/queue"
	"soniq/internal/identity/org"
	"soniq/internal/identity/user"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/wiring"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/pbx"
	"soniq/internal/telephony/voicemail"
)

// Greetings stores a greeting that a user recorded by telephone in the file at path, and sets it as the greeting of
// their mailbox.
type Greetings interface {
	SetGreeting(ctx context.Context, org, user, path string) error
}

// LockObserver is notified when wrong PINs have locked a mailbox.
type LockObserver interface {
	MailboxLocked(ctx context.Context, org, user string, by pbx.Info)
}

// Config holds the services that mailboxes use.
type Config struct {
	DB        *db.DB
	Orgs      *org.Service
	Users     *user.Service
	Queues    *queue.Service
	Flows     *flow.Service
	Voicemail *voicemail.Service
	Files     call.Files
	Greetings Greetings
	Observers []LockObserver
	Log       *slog.Logger
	Clock     clock.Clock // nil: the system clock
}

// Service records messages of callers and plays them to users.
type Service struct{ cfg Config }

// New returns a service for mailboxes.
func New(c Config) *Service {
	c.Clock = clock.OrSystem(c.Clock)
	wiring.Check(c)
	return &Service{c}
}
