// Package directory answers the questions of the switch and of the SIP server: which phone logs in, which user, queue or number is dialled,
// at which phones a user is registered, and by which trunk a call leaves.
package directory

import (
	"context"
	"net/netip"
	"time"

	"soniq/internal/identity/org"
	"soniq/internal/identity/user"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/protocol/sip"
	"soniq/internal/telephony/device"
	"soniq/internal/telephony/number"
	"soniq/internal/telephony/pbx"
	"soniq/internal/telephony/trunk"
)

// Config has the services that a Directory reads.
type Config struct {
	DB      *db.DB
	Bus     *bus.Bus
	Orgs    *org.Service
	Users   *user.Service
	Devices *device.Service
	Numbers *number.Service
	Trunks  *trunk.Service
	Gate    *trunk.OutboundGate
	Outbox  *event.Outbox
	Clock   clock.Clock // nil: the system clock

	TestParties TestParties // simulated callers and callees of sandboxes; nil: there are none
	Suspensions Suspensions // nil: no organisation is suspended for a reset
}

// TestParties are the simulated callers and callees of sandboxes.
type TestParties interface {
	// Callee returns the route to a simulated callee. ok is false if the number is none of the test numbers.
	Callee(c pbx.Caller, country, dialled string) (t pbx.TrunkOut, ok bool)
	// Caller returns the trunk account of the simulated caller that sends from an address.
	Caller(source netip.AddrPort) (account string, ok bool)
	// CallID returns once the id that the call from an address gets; ok is false if no simulated caller sends from there.
	CallID(source netip.AddrPort) (id string, ok bool)
}

// Suspensions reports organisations in which no call may begin for the moment, because they are being reset.
type Suspensions interface {
	Suspended(org string) bool
}

// Directory looks up users, extensions, numbers, phones and trunks. Users and extensions are cached. It is safe for concurrent use.
type Directory struct {
	cfg Config

	onRegister []func(device, account string, all []sip.Binding)

	users      *bus.Cache[*user.User]      // by "org/user"
	extensions *bus.Cache[pbx.Destination] // by "org/extension"
	standby    *standby
}

// cacheTime is how long a cached user or extension stays valid without a change on this node.
const cacheTime = 30 * time.Second

// New returns a directory. Changes of users empty its caches.
func New(ctx context.Context, c Config) *Directory {
	c.Clock = clock.OrSystem(c.Clock)
	d := &Directory{cfg: c}
	d.users = bus.NewClearedCache[*user.User](c.Bus, user.Changed, cacheTime, c.Clock.Now)
	d.extensions = bus.NewClearedCache[pbx.Destination](c.Bus, user.Changed, cacheTime, c.Clock.Now)
	d.standby = newStandby(d)
	go d.standby.run(ctx)
	return d
}

// OnRegister adds an observer that is called after the bindings of a phone were saved. Call it before SIP listens.
func (d *Directory) OnRegister(f func(device, account string, all []sip.Binding)) {
	d.onRegister = append(d.onRegister, f)
}

// suspended reports whether an organisation is being reset.
func (d *Directory) suspended(org string) bool {
	return d.cfg.Suspensions != nil && d.cfg.Suspensions.Suspended(org)
}

// CachedUser returns a user. The caller must not change it.
func (d *Directory) CachedUser(ctx context.Context, org, id string) (*user.User, error) {
	return d.users.Get(org+"/"+id, func() (*user.User, error) {
		u, err := d.cfg.Users.Get(ctx, d.cfg.DB.Read(ctx), org, id)
		return &u, err
	})
}

// ExtensionOf returns the extension of a user, or the user's id if the user has none.
func ExtensionOf(u *user.User) string {
	if u.Extension == nil {
		return u.ID
	}
	return *u.Extension
}

// textOf returns an optional text, or "".
func textOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// Policy returns the recording settings and the country of an organisation.
func (d *Directory) Policy(ctx context.Context, id string) (pbx.Policy, error) {
	last, known := pbx.Policy{}, false
	if o := d.standby.organisation(id); o != nil {
		last, known = o.policy, true
	}
	return orLastKnown(ctx, d.standby, last, known, func(ctx context.Context) (pbx.Policy, error) {
		o, err := d.cfg.Orgs.GetShared(ctx, id)
		if err != nil {
			return pbx.Policy{}, err
		}
		return policyOf(o), nil
	})
}

func policyOf(o *org.Organization) pbx.Policy {
	r := &o.Settings.Recording
	return pbx.Policy{Record: r.ByPolicy(), Consent: "not_required", Announce: r.Announced(), Country: o.Country,
		Notice: &pbx.RecordingNotice{Required: r.NoticeRequired(), Audio: textOf(r.AnnounceAudioID), Text: textOf(r.AnnounceText),
			Language: o.Language},
		Retention: time.Duration(r.RetentionDays) * 24 * time.Hour}
}

// IsAlone reports whether the installation has only one live organisation.
func (d *Directory) IsAlone(ctx context.Context) bool { return d.cfg.Orgs.IsAlone(ctx) }
