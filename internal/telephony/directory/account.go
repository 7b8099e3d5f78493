package directory

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"soniq/internal/identity/user"
	"soniq/internal/platform/db"
	"soniq/internal/protocol/sip"
	"soniq/internal/protocol/sip/sipmsg"
	"soniq/internal/telephony/device"
	"soniq/internal/telephony/pbx"
)

// SIP accounts: credentials of phones and trunks, registered bindings, trunks by source address.

// Credentials returns the account with a SIP user name: a phone, or a trunk whose carrier registers with us.
func (d *Directory) Credentials(ctx context.Context, username string) (sip.Account, bool, error) {
	p := d.standby.phone(strings.ToLower(username))
	if p == nil {
		return d.credentials(ctx, username)
	}
	found := true
	a, err := orLastKnown(ctx, d.standby, p.account, true, func(ctx context.Context) (a sip.Account, err error) {
		a, found, err = d.credentials(ctx, username)
		return a, err
	})
	return a, found || a.ID != "", err
}

// credentials reads an account.
func (d *Directory) credentials(ctx context.Context, username string) (sip.Account, bool, error) {
	a, ok, err := d.cfg.Devices.Account(ctx, username)
	if err != nil {
		return sip.Account{}, false, err
	}
	if ok {
		barred, err := d.barred(ctx, a)
		return sip.Account{ID: a.Username, HA1MD5: a.HA1MD5, HA1SHA256: a.HA1SHA256, WantSHA256: a.WantSHA256, Barred: barred,
			TokenGeneration: a.TokenGeneration}, err == nil, err
	}
	t, ok, err := d.cfg.Trunks.InboundAccount(ctx, username)
	if err != nil || !ok {
		return sip.Account{}, false, err
	}
	return sip.Account{ID: pbx.TrunkAccount(t.OrgID, t.TrunkID), HA1MD5: t.HA1MD5, HA1SHA256: t.HA1SHA256}, true, nil
}

// barred reports whether a phone may place emergency calls only, because its user or its organisation is suspended.
func (d *Directory) barred(ctx context.Context, a device.Account) (bool, error) {
	o, err := d.cfg.Orgs.GetShared(ctx, a.OrgID)
	if err != nil || o.IsBlocked() {
		return true, err
	}
	u, err := d.CachedUser(ctx, a.OrgID, a.UserID)
	if db.IsNone(err) {
		return true, nil
	}
	return u.Status == user.Suspended, err
}

// Trunk returns the account of the trunk whose carrier sends from an address.
func (d *Directory) Trunk(ctx context.Context, source netip.AddrPort, _ sipmsg.Transport) (string, bool) {
	if d.cfg.TestParties != nil {
		if account, ok := d.cfg.TestParties.Caller(source); ok {
			return account, true
		}
	}
	t, ok, err := d.cfg.Trunks.BySource(ctx, source.Addr().Unmap())
	if err != nil || !ok {
		return "", false
	}
	return pbx.TrunkAccount(t.OrgID, t.TrunkID), true
}

// SimulatedCall returns the id that the call of a simulated caller gets, by the address from which it comes.
func (d *Directory) SimulatedCall(source netip.AddrPort) (id string, ok bool) {
	if d.cfg.TestParties == nil {
		return "", false
	}
	return d.cfg.TestParties.CallID(source)
}

// IsSourceOf reports whether the carrier of a trunk sends from an address.
func (d *Directory) IsSourceOf(ctx context.Context, account string, source netip.AddrPort) bool {
	if d.cfg.TestParties != nil {
		if party, ok := d.cfg.TestParties.Caller(source); ok {
			return party == account
		}
	}
	_, id, ok := strings.Cut(account, "/")
	if !ok {
		return false
	}
	matches, err := d.cfg.Trunks.MatchesSource(ctx, source.Addr().Unmap(), id)
	return err == nil && matches
}

// Exempt reports whether a source is never banned: the operator confirmed it for a trunk, or it carried a call of one.
func (d *Directory) Exempt(ctx context.Context, source netip.Addr) bool {
	yes, err := d.cfg.Trunks.Exempt(ctx, source)
	return err == nil && yes
}

// TrunkCallEstablished records that a call from a trunk was acknowledged, so that its source is known to be the carrier's.
func (d *Directory) TrunkCallEstablished(ctx context.Context, org, trunkID string, source netip.Addr) error {
	return d.cfg.Trunks.CallEstablished(ctx, org, trunkID, source)
}

// Save replaces the bindings of a phone, and notifies the observers.
func (d *Directory) Save(ctx context.Context, account string, all []sip.Binding) error {
	return d.save(ctx, account, all, d.cfg.Devices.Save)
}

// Lose replaces the bindings of a phone whose browser became unreachable at a time, and notifies the observers.
func (d *Directory) Lose(ctx context.Context, account string, left []sip.Binding, at time.Time) error {
	return d.save(ctx, account, left, func(ctx context.Context, deviceID string, left []device.Binding) error {
		return d.cfg.Devices.Lose(ctx, deviceID, left, at)
	})
}

func (d *Directory) save(ctx context.Context, account string, all []sip.Binding,
	store func(context.Context, string, []device.Binding) error) error {
	a, ok, err := d.cfg.Devices.Account(ctx, account)
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("no phone has the user name %s", account)
	}
	kept := make([]device.Binding, len(all))
	for i, b := range all {
		kept[i] = device.Binding{DeviceID: a.DeviceID, Contact: b.Contact, Source: b.Source, Transport: string(b.Transport), Flow: b.Flow,
			Node: b.Node, Path: b.Path, Instance: b.Instance, CallID: b.CallID, CSeq: b.CSeq, Priority: b.Priority, UserAgent: b.UserAgent,
			Expires: b.Expires, Registered: b.Registered}
	}
	if err := store(ctx, a.DeviceID, kept); err != nil {
		return err
	}
	if len(all) > 0 {
		d.standby.seen(a.Username)
	}
	for _, f := range d.onRegister {
		f(a.DeviceID, account, all)
	}
	return nil
}

// Load returns the bindings of the phone with a SIP user name.
func (d *Directory) Load(ctx context.Context, account string) ([]sip.Binding, error) {
	a, ok, err := d.cfg.Devices.Account(ctx, account)
	if err != nil || !ok {
		return nil, err
	}
	return d.Contacts(ctx, a.DeviceID)
}

// Contacts returns the bindings of a device.
func (d *Directory) Contacts(ctx context.Context, device string) ([]sip.Binding, error) {
	all, err := d.cfg.Devices.Load(ctx, device)
	if err != nil {
		return nil, err
	}
	return BindingsOf(all), nil
}

// BindingsOf converts stored bindings for the SIP server.
func BindingsOf(all []device.Binding) []sip.Binding {
	bindings := make([]sip.Binding, len(all))
	for i, b := range all {
		bindings[i] = BindingOf(b)
	}
	return bindings
}

// BindingOf converts a stored binding for the SIP server.
func BindingOf(b device.Binding) sip.Binding {
	return sip.Binding{Account: b.Username, Contact: b.Contact, Source: b.Source, Transport: sipmsg.Transport(b.Transport), Flow: b.Flow,
		Node: b.Node, Path: b.Path, Instance: b.Instance, CallID: b.CallID, CSeq: b.CSeq, Priority: b.Priority, UserAgent: b.UserAgent,
		Expires:    b.Expires,
		Registered: b.Registered}
}

// TrunkIn returns what the switch needs to know of the trunk that a call came in by.
func (d *Directory) TrunkIn(ctx context.Context, org, id string) (pbx.TrunkIn, error) {
	o, err := d.cfg.Orgs.GetShared(ctx, org)
	if err != nil {
		return pbx.TrunkIn{}, err
	}
	registers, err := d.cfg.Trunks.Registers(ctx, id)
	if err != nil {
		return pbx.TrunkIn{}, err
	}
	refers, err := d.cfg.Trunks.AllowsRefer(ctx, id)
	return pbx.TrunkIn{Org: org, ID: id, Country: o.Country, Sandbox: o.Sandbox(), Registers: registers, AllowRefer: refers}, err
}

// Caller returns the user and the organisation of the phone that authenticated.
func (d *Directory) Caller(ctx context.Context, account string) (pbx.Caller, error) {
	last, known := pbx.Caller{}, false
	if p := d.standby.phone(account); p != nil {
		last, known = p.caller, true
	}
	d.standby.seen(account)
	return orLastKnown(ctx, d.standby, last, known, func(ctx context.Context) (pbx.Caller, error) { return d.caller(ctx, account) })
}

func (d *Directory) caller(ctx context.Context, account string) (pbx.Caller, error) {
	a, ok, err := d.cfg.Devices.Account(ctx, account)
	if err != nil || !ok {
		return pbx.Caller{}, fmt.Errorf("phone %s does not exist any more: %w", account, cmp.Or(err, db.ErrNone))
	}
	c, err := d.callerOfUser(ctx, a.OrgID, a.UserID)
	c.DeviceID, c.SRTP = a.DeviceID, a.SRTP
	return c, err
}

// callerOfUser returns a user as the caller, without a device.
func (d *Directory) callerOfUser(ctx context.Context, org, id string) (pbx.Caller, error) {
	u, err := d.CachedUser(ctx, org, id)
	if err != nil {
		return pbx.Caller{}, err
	}
	o, err := d.cfg.Orgs.GetShared(ctx, org)
	if err != nil {
		return pbx.Caller{}, err
	}
	return pbx.Caller{Org: org, UserID: id, Extension: ExtensionOf(u), Name: u.Name, Sandbox: o.Sandbox(),
		Barred:   o.IsBlocked() || d.suspended(org) || u.Status == user.Suspended,
		Recorded: u.RecordingMode == "on", Unrecorded: u.RecordingMode == "off"}, nil
}

// recordingOf returns the recording mode of a user's calls; "" if it is that of the organisation.
func recordingOf(u *user.User) string {
	if u.RecordingMode == "inherit" {
		return ""
	}
	return u.RecordingMode
}

// Phones returns the registered phones of a user. There are none if the user is suspended or has do-not-disturb on.
func (d *Directory) Phones(ctx context.Context, org, userID string) ([]pbx.Phone, error) {
	u, err := d.CachedUser(ctx, org, userID)
	if err != nil {
		return nil, err
	}
	o, err := d.cfg.Orgs.GetShared(ctx, org)
	if err != nil || o.IsBlocked() || u.Status == user.Suspended || u.DND.On(d.cfg.Clock.Now()) {
		return nil, err
	}
	all, err := d.cfg.Devices.BindingsOfUser(ctx, org, userID)
	if err != nil {
		return nil, err
	}
	phones := make([]pbx.Phone, len(all))
	for i, b := range all {
		phones[i] = pbx.Phone{DeviceID: b.DeviceID, Binding: BindingOf(b), SRTP: b.SRTP}
	}
	return phones, nil
}
