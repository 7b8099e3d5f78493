package server

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"soniq/internal/contactcenter/routing"
	"soniq/internal/identity/org"
	"soniq/internal/identity/user"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/protocol/sip"
	"soniq/internal/telephony/device"
	"soniq/internal/telephony/number"
	"soniq/internal/telephony/pbx"
	"soniq/internal/telephony/trunk"
)

// directory looks up users, extensions, numbers, phones and trunks for the switch and the SIP server. Users and extensions are cached.
type directory struct {
	db      *db.DB
	orgs    *org.Service
	users   *user.Service
	devices *device.Service
	numbers *number.Service
	trunks  *trunk.Service
	gate    *trunk.Gate
	outbox  *event.Outbox
	now     func() time.Time

	parties   *testParties // of the sandbox; may be nil
	strangers *strangers   // may be nil
	bars      *bars        // organisations of which no call may begin; may be nil

	registered func(device string, all []sip.Binding) // told where a device can be reached now; may be nil

	lamps *lamps // may be nil

	people     *bus.Cache[*user.User]      // by org and user id
	extensions *bus.Cache[pbx.Destination] // by org and extension
}

// peopleChanged is the subject that empties the directory's caches of people.
const peopleChanged = "changed.directory"

const directoryLife = 30 * time.Second

func newDirectory(ctx context.Context, b *bus.Bus, d *directory) *directory {
	d.people = bus.NewCache[*user.User](b, peopleChanged, directoryLife, d.now)
	d.extensions = bus.NewCache[pbx.Destination](b, peopleChanged, directoryLife, d.now)
	changes := b.Subscribe(user.Changed, 256)
	go func() {
		defer changes.Close()
		for {
			select {
			case <-changes.C:
				b.Publish(peopleChanged, nil)
			case <-ctx.Done():
				return
			}
		}
	}()
	return d
}

// Credentials finds who logs in: a phone by its user name, or a carrier that logs in with us.
func (d *directory) Credentials(ctx context.Context, username string) (sip.Account, bool, error) {
	a, ok, err := d.devices.Account(ctx, username)
	if err != nil {
		return sip.Account{}, false, err
	}
	if ok {
		barred, err := d.barred(ctx, a)
		return sip.Account{ID: a.Username, HA1MD5: a.HA1MD5, HA1SHA256: a.HA1SHA256, WantSHA256: a.WantSHA256, Barred: barred}, err == nil, err
	}
	t, ok, err := d.trunks.Account(ctx, username)
	if err != nil || !ok {
		return sip.Account{}, false, err
	}
	return sip.Account{ID: pbx.TrunkAccount(t.OrgID, t.TrunkID), HA1MD5: t.HA1MD5, HA1SHA256: t.HA1SHA256}, true, nil
}

// barred reports whether a phone can do nothing but call for help: its user or its organisation is suspended.
func (d *directory) barred(ctx context.Context, a device.Account) (bool, error) {
	o, err := d.orgs.Look(ctx, a.OrgID)
	if err != nil || o.Barred() {
		return true, err
	}
	u, err := d.person(ctx, a.OrgID, a.UserID)
	if db.IsNone(err) {
		return true, nil
	}
	return u.Status == user.Suspended, err
}

// Trunk finds the trunk whose carrier sends from an address.
func (d *directory) Trunk(ctx context.Context, source netip.AddrPort, _ sip.Transport) (string, bool) {
	if d.strangers != nil {
		if name, ok := d.strangers.trunk(source); ok {
			return name, true
		}
	}
	t, ok, err := d.trunks.BySource(ctx, source.Addr().Unmap())
	if err != nil || !ok {
		return "", false
	}
	return pbx.TrunkAccount(t.OrgID, t.TrunkID), true
}

// Save keeps where a phone can be reached.
func (d *directory) Save(ctx context.Context, account string, all []sip.Binding) error {
	a, ok, err := d.devices.Account(ctx, account)
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("no phone has the user name %s", account)
	}
	kept := make([]device.Binding, len(all))
	for i, b := range all {
		kept[i] = device.Binding{DeviceID: a.DeviceID, Contact: b.Contact, Source: b.Source, Transport: string(b.Transport), Flow: b.Flow,
			Path: b.Path, Instance: b.Instance, CallID: b.CallID, CSeq: b.CSeq, Priority: b.Priority, UserAgent: b.UserAgent,
			Expires: b.Expires, Registered: b.Registered}
	}
	err = d.devices.Save(ctx, a.DeviceID, kept)
	if err == nil && d.registered != nil {
		d.registered(a.DeviceID, all)
	}
	if err == nil && d.lamps != nil && len(all) > 0 {
		d.lamps.registered(account)
	}
	return err
}

// Load returns what a phone registered.
func (d *directory) Load(ctx context.Context, account string) ([]sip.Binding, error) {
	a, ok, err := d.devices.Account(ctx, account)
	if err != nil || !ok {
		return nil, err
	}
	return d.Contacts(ctx, a.DeviceID)
}

// Contacts are those a device has registered.
func (d *directory) Contacts(ctx context.Context, device string) ([]sip.Binding, error) {
	all, err := d.devices.Load(ctx, device)
	if err != nil {
		return nil, err
	}
	bindings := make([]sip.Binding, len(all))
	for i, b := range all {
		bindings[i] = bindingOf(b)
	}
	return bindings, nil
}

func bindingOf(b device.Binding) sip.Binding {
	return sip.Binding{Contact: b.Contact, Source: b.Source, Transport: sip.Transport(b.Transport), Flow: b.Flow, Path: b.Path,
		Instance: b.Instance, CallID: b.CallID, CSeq: b.CSeq, Priority: b.Priority, UserAgent: b.UserAgent, Expires: b.Expires,
		Registered: b.Registered}
}

// TrunkIn describes the trunk a call came in by.
func (d *directory) TrunkIn(ctx context.Context, org, id string) (pbx.TrunkIn, error) {
	o, err := d.orgs.Look(ctx, org)
	return pbx.TrunkIn{Org: org, ID: id, Country: o.Country, Sandbox: o.Sandbox()}, err
}

// Caller describes the phone that authenticated.
func (d *directory) Caller(ctx context.Context, account string) (pbx.Caller, error) {
	a, ok, err := d.devices.Account(ctx, account)
	if err != nil || !ok {
		return pbx.Caller{}, errors.Join(err, fmt.Errorf("phone %s is not known any more", account))
	}
	u, err := d.person(ctx, a.OrgID, a.UserID)
	if err != nil {
		return pbx.Caller{}, err
	}
	o, err := d.orgs.Look(ctx, a.OrgID)
	return pbx.Caller{Org: a.OrgID, DeviceID: a.DeviceID, UserID: a.UserID, Extension: extension(u), Name: u.Name, SRTP: a.SRTP,
		Sandbox: o.Sandbox(), Barred: o.Barred() || d.bars.has(a.OrgID) || u.Status == user.Suspended}, err
}

// person is a user, whom nobody may change.
func (d *directory) person(ctx context.Context, org, id string) (*user.User, error) {
	return d.people.Get(org+"/"+id, func() (*user.User, error) {
		u, err := d.users.Get(ctx, d.db.Read(ctx), org, id)
		return &u, err
	})
}

func extension(u *user.User) string {
	if u.Extension == nil {
		return u.ID
	}
	return *u.Extension
}

// errNobody is kept in no cache: an extension may be given to somebody at any moment.
var errNobody = errors.New("nobody has this extension")

// User finds a user by id.
func (d *directory) User(ctx context.Context, org, id string) (pbx.Destination, bool, error) {
	u, err := d.person(ctx, org, id)
	if db.IsNone(err) {
		return pbx.Destination{}, false, nil
	}
	if err != nil {
		return pbx.Destination{}, false, err
	}
	o, err := d.orgs.Look(ctx, org)
	to := pbx.Destination{Org: org, UserID: u.ID, Name: u.Name, Extension: extension(u), Number: extension(u), Sandbox: o.Sandbox(),
		Barred: o.Barred() || d.bars.has(org)}
	d.wants(&to, u)
	return to, err == nil, err
}

// wants says whether a user wants more of calls than that their phones ring: from the start, or once they rang in vain.
func (d *directory) wants(to *pbx.Destination, u *user.User) {
	f := u.Forward
	if f.Busy != nil || f.NoAnswer != nil || f.Unreachable != nil || u.Voicemail.Enabled {
		to.After, to.RingFor = true, ringsBeforeMore
	}
	to.Led = f.Always != nil || u.RingStrategy == "in_order" || to.After && u.DND.On(d.now())
}

// ringsBeforeMore is how long phones ring before somebody else, or voicemail, takes the call.
const ringsBeforeMore = 25 * time.Second

// stars are where the codes lead that telephones dial.
var stars = map[string]string{number.OwnMailbox: routing.OwnMailbox, number.AnyMailbox: routing.AnyMailbox}

// Extension finds who has an extension: a user or a queue.
func (d *directory) Extension(ctx context.Context, org, dialled string) (pbx.Destination, bool, error) {
	if len(dialled) > 8 || strings.HasPrefix(dialled, "+") {
		return pbx.Destination{}, false, nil
	}
	if leads, ok := stars[dialled]; ok {
		return pbx.Destination{Org: org, Number: dialled, Leads: leads}, true, nil
	}
	found, err := d.extensions.Get(org+"/"+dialled, func() (pbx.Destination, error) {
		if o, err := d.orgs.Look(ctx, org); err != nil {
			return pbx.Destination{}, err
		} else if _, ok := trunk.Emergency(o.Country, dialled); ok {
			return pbx.Destination{}, errNobody // emergency numbers come before everything, also extensions of another time
		}
		u, err := d.users.ByExtension(ctx, d.db.Read(ctx), org, dialled)
		if db.IsNone(err) {
			return pbx.Destination{}, errNobody
		}
		return pbx.Destination{Org: org, UserID: u.ID, Name: u.Name, Extension: extension(&u), Number: dialled}, err
	})
	if errors.Is(err, errNobody) {
		return d.queueAt(ctx, org, dialled)
	}
	if err != nil {
		return found, false, err
	}
	u, err := d.person(ctx, org, found.UserID)
	if db.IsNone(err) {
		return pbx.Destination{}, false, nil
	}
	d.wants(&found, u)
	return found, err == nil, err
}

// queueAt finds the queue that has an extension.
func (d *directory) queueAt(ctx context.Context, id, dialled string) (pbx.Destination, bool, error) {
	owner, err := org.ExtensionOwner(ctx, d.db.Read(ctx), id, dialled)
	if db.IsNone(err) || err == nil && !strings.HasPrefix(owner, "que_") {
		return pbx.Destination{}, false, nil
	}
	if err != nil {
		return pbx.Destination{}, false, err
	}
	o, err := d.orgs.Look(ctx, id)
	if err != nil {
		return pbx.Destination{}, false, err
	}
	if _, ok := trunk.Emergency(o.Country, dialled); ok {
		return pbx.Destination{}, false, nil
	}
	return pbx.Destination{Org: id, Extension: dialled, Number: dialled, Leads: "queue:" + owner, Sandbox: o.Sandbox(),
		Barred: o.Barred() || d.bars.has(id)}, true, nil
}

// Number finds where a number of ours leads.
func (d *directory) Number(ctx context.Context, t pbx.TrunkIn, dialled string) (pbx.Destination, bool, error) {
	e164, ok := number.Parse(dialled, t.Country)
	if !ok {
		return pbx.Destination{}, false, nil
	}
	n, ok, err := d.numbers.Route(ctx, e164, t.ID)
	if err != nil || !ok {
		return pbx.Destination{}, false, err
	}
	o, err := d.orgs.Look(ctx, n.OrgID)
	if err != nil {
		return pbx.Destination{}, false, err
	}
	to := pbx.Destination{Org: n.OrgID, NumberID: n.ID, Number: n.Number, TrunkID: *n.TrunkID, Sandbox: o.Sandbox(), Barred: o.Barred() || d.bars.has(n.OrgID)}
	if n.RecordingMode != "inherit" {
		to.Recording = n.RecordingMode
	}
	switch {
	case n.AssignedTo.ID == nil:
		if n.Fallback != nil {
			to.Leads = *n.Fallback
		}
		return to, true, nil
	case n.AssignedTo.Type != "user":
		to.Leads = n.AssignedTo.Type + ":" + *n.AssignedTo.ID
		return to, true, nil
	}
	to.UserID, to.After = *n.AssignedTo.ID, n.Fallback != nil
	u, err := d.person(ctx, n.OrgID, to.UserID)
	if err != nil {
		return to, false, err
	}
	to.Name, to.Extension = u.Name, extension(u)
	d.wants(&to, u)
	return to, true, nil
}

// Phones are where a user can be reached now.
func (d *directory) Phones(ctx context.Context, org, userID string) ([]pbx.Phone, error) {
	u, err := d.person(ctx, org, userID)
	if err != nil {
		return nil, err
	}
	o, err := d.orgs.Look(ctx, org)
	if err != nil || o.Barred() || u.Status == user.Suspended || u.DND.On(d.now()) {
		return nil, err
	}
	all, err := d.devices.OfUserBindings(ctx, org, userID)
	if err != nil {
		return nil, err
	}
	phones := make([]pbx.Phone, len(all))
	for i, b := range all {
		phones[i] = pbx.Phone{DeviceID: b.DeviceID, Binding: bindingOf(b), SRTP: b.SRTP}
	}
	return phones, nil
}

// Policy is how an organisation's calls are treated.
func (d *directory) Policy(ctx context.Context, id string) (pbx.Policy, error) {
	o, err := d.orgs.Look(ctx, id)
	if err != nil {
		return pbx.Policy{}, err
	}
	r := &o.Settings.Recording
	return pbx.Policy{Record: r.Mode == "on", Consent: "not_required", Announce: r.Announce, Country: o.Country,
		Retention: time.Duration(r.RetentionDays) * 24 * time.Hour}, nil
}
