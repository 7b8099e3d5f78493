// Package devicetest makes a device service for tests of packages that need phones.
package devicetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"soniq/internal/identity/user"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/telephony/device"
)

// New returns a service of phones that no request reaches, without emergency calls.
func New(d *db.DB, users *user.Service, s device.Sealer, outbox *event.Outbox, b *bus.Bus, now func() time.Time,
	domain string) *device.Service {
	return device.New(Config(d, users, s, outbox, b, now, domain))
}

// Config returns the configuration of New, so that a test can replace dependencies.
func Config(d *db.DB, users *user.Service, s device.Sealer, outbox *event.Outbox, b *bus.Bus, now func() time.Time,
	domain string) device.Config {
	return device.Config{DB: d, Users: users, Sealer: s, Outbox: outbox, Bus: b, Clock: clock.Func(now), Domain: domain,
		Server: Nothing{}, Templates: Nothing{}, Emergency: Nothing{}, ICEServers: Nothing{}}
}

// Nothing implements the dependencies of package device.
type Nothing struct{}

// ProvisionBase returns a URL.
func (Nothing) ProvisionBase() string { return "https://voice.example.com" }

// Notify fails.
func (Nothing) Notify(context.Context, device.Binding, string, string) (int, error) {
	return 0, errors.New("no response")
}

// CloseToken does nothing: there are no connections.
func (Nothing) CloseToken(string) {}

// Templates returns the name of a template.
func (Nothing) Templates() []string { return []string{"generic"} }

// Template returns the name in the record.
func (Nothing) Template(template, _ string) string { return template }

// Main returns "": addresses are folders.
func (Nothing) Main(string) string { return "" }

// Event returns the event of most vendors.
func (Nothing) Event(_ string, reboot bool) string {
	return fmt.Sprintf("check-sync;reboot=%t", reboot)
}

// HasEmergencyRoute returns false.
func (Nothing) HasEmergencyRoute(context.Context, string) (bool, error) { return false, nil }

// WebRTCServers returns no servers.
func (Nothing) WebRTCServers(string) []device.ICEServer { return nil }
