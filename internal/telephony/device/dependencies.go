package device

import (
	"context"

	"soniq/internal/identity/user"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
)

// Config has the dependencies of a Service.
type Config struct {
	DB     *db.DB
	Users  *user.Service
	Sealer Sealer
	Outbox *event.Outbox // gets device.registration events
	Bus    *bus.Bus
	Clock  clock.Clock `wiring:"optional"`
	// Domain is the SIP domain and digest realm of every phone. Changing it invalidates all passwords, because the
	// stored digests contain the realm.
	Domain string

	Server     Server
	Templates  Templates
	Emergency  Emergency
	WebSocket  string     // URL of SIP over WebSocket (RFC 7118)
	ICEServers ICEServers // for phones in browsers
}

// Sealer encrypts stored values; the associated data binds a value to its row and column. Digest returns the hash of a
// secret that is stored only for comparison.
type Sealer interface {
	Seal(plain, associated []byte) ([]byte, error)
	Unseal(sealed, associated []byte) ([]byte, error)
	Digest(secret string) string
}

// Server is the running server as phones see it.
type Server interface {
	// ProvisionBase returns the URL of this server for phones, without a trailing slash.
	ProvisionBase() string
	// Notify sends a NOTIFY to a phone and returns the status of its response. An error means that there was none.
	Notify(ctx context.Context, b Binding, aor, event string) (status int, err error)
	// CloseToken closes the connections to this node that a token of an account authorised.
	CloseToken(username string)
}

// Templates has the templates of phone configurations, from package provisioning.
type Templates interface {
	// Templates lists the names of the templates.
	Templates() []string
	// Template returns the template of a phone from its record, or "".
	Template(template, vendor string) string
	// Main returns the file name at the end of a template's address, or "" if the address is a folder.
	Main(template string) string
	// Event returns the event of the NOTIFY that makes a phone with the template fetch its configuration again.
	Event(template string, reboot bool) string
}

// Emergency reports whether the phones of an organisation can call emergency services.
type Emergency interface {
	HasEmergencyRoute(ctx context.Context, org string) (bool, error)
}

// ICEServers returns the STUN and TURN servers for a user.
type ICEServers interface {
	WebRTCServers(userID string) []ICEServer
}

// RegistrationObserver is notified after the commit of a change of a user's phone or its registration.
type RegistrationObserver interface {
	RegistrationChanged(org, userID string)
}

// Observe adds an observer. Call it before the first request.
func (s *Service) Observe(o RegistrationObserver) { s.observers = append(s.observers, o) }

// registrationChanged notifies the observers.
func (s *Service) registrationChanged(org, userID string) {
	for _, o := range s.observers {
		o.RegistrationChanged(org, userID)
	}
}
