package directory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"soniq/internal/identity/org"
	"soniq/internal/identity/user"
	"soniq/internal/platform/db"
	"soniq/internal/telephony/number"
	"soniq/internal/telephony/pbx"
	"soniq/internal/telephony/trunk"
)

// Destinations inside an organisation: users, extensions, queues and the organisation's own numbers.

// Script targets of the star codes. Package routing runs them.
const (
	OwnMailbox = "mailbox:own"
	AnyMailbox = "mailbox:any"
)

// starTargets maps the star codes to script targets.
var starTargets = map[string]string{number.OwnMailboxCode: OwnMailbox, number.AnyMailboxCode: AnyMailbox}

// errNoUser is not cached, because an extension can be assigned at any time.
var errNoUser = errors.New("no user has this extension")

// User returns the destination of a user. ok is false if the user does not exist.
func (d *Directory) User(ctx context.Context, org, id string) (to pbx.Destination, ok bool, err error) {
	u, err := d.CachedUser(ctx, org, id)
	if db.IsNone(err) {
		return pbx.Destination{}, false, nil
	}
	if err != nil {
		return pbx.Destination{}, false, err
	}
	o, err := d.cfg.Orgs.GetShared(ctx, org)
	to = pbx.Destination{Org: org, UserID: u.ID, Name: u.Name, Extension: ExtensionOf(u), Number: ExtensionOf(u), Sandbox: o.Sandbox(),
		Barred: o.IsBlocked() || d.suspended(org)}
	d.applyUserRules(&to, u)
	return to, err == nil, err
}

// applyUserRules sets whether a script handles the call: immediately (forward always, phones in order, do-not-disturb with a mailbox), or
// after no answer (voicemail, conditional forwarding).
func (d *Directory) applyUserRules(to *pbx.Destination, u *user.User) {
	to.Recording = cmp.Or(to.Recording, recordingOf(u))
	f := u.Forward
	if f.Busy != nil || f.NoAnswer != nil || f.Unreachable != nil || u.Voicemail.Enabled {
		to.ScriptAfterNoAnswer, to.RingFor = true, ringTimeBeforeScript
	}
	to.RingFor, to.RingChosen = cmp.Or(f.RingTime(), to.RingFor), f.NoAnswerSeconds != nil
	to.ScriptFirst = f.Always != nil || u.RingStrategy == "in_order" || to.ScriptAfterNoAnswer && u.DND.On(d.cfg.Clock.Now())
}

// ringTimeBeforeScript is how long phones ring before forwarding or voicemail takes the call of a user who has not chosen a time.
const ringTimeBeforeScript = 25 * time.Second

// Extension returns the destination of an extension: a star code, a user or a queue. Emergency numbers and crisis lines are never
// extensions, even if a user has one.
func (d *Directory) Extension(ctx context.Context, org, dialled string) (pbx.Destination, bool, error) {
	if len(dialled) > 8 || strings.HasPrefix(dialled, "+") {
		return pbx.Destination{}, false, nil
	}
	if target, ok := starTargets[dialled]; ok {
		return pbx.Destination{Org: org, Number: dialled, Target: target}, true, nil
	}
	if trunk.MaybeReserved(dialled) && d.isReserved(ctx, org, dialled) {
		return pbx.Destination{}, false, nil // before the database is asked
	}
	found, err := d.extensions.Get(org+"/"+dialled, func() (pbx.Destination, error) { return d.userAt(ctx, org, dialled) })
	if errors.Is(err, errNoUser) {
		return d.queueAt(ctx, org, dialled)
	}
	if err != nil {
		return found, false, err
	}
	u, err := d.CachedUser(ctx, org, found.UserID)
	if db.IsNone(err) {
		return pbx.Destination{}, false, nil
	}
	d.applyUserRules(&found, u)
	return found, err == nil, err
}

// isReserved reports whether the dialled digits are an emergency number or a crisis line of the organisation's country.
func (d *Directory) isReserved(ctx context.Context, org, dialled string) bool {
	p, err := d.Policy(ctx, org)
	if err != nil {
		return false
	}
	return trunk.ReservedExtension(p.Country, dialled)
}

// userAt returns the user with an extension, or errNoUser.
func (d *Directory) userAt(ctx context.Context, org, dialled string) (pbx.Destination, error) {
	u, err := d.cfg.Users.ByExtension(ctx, d.cfg.DB.Read(ctx), org, dialled)
	if db.IsNone(err) {
		return pbx.Destination{}, errNoUser
	}
	return pbx.Destination{Org: org, UserID: u.ID, Name: u.Name, Extension: ExtensionOf(&u), Number: dialled}, err
}

// queueAt returns the queue with an extension.
func (d *Directory) queueAt(ctx context.Context, id, dialled string) (pbx.Destination, bool, error) {
	owner, err := org.ExtensionOwner(ctx, d.cfg.DB.Read(ctx), id, dialled)
	if db.IsNone(err) || err == nil && !strings.HasPrefix(owner, "que_") {
		return pbx.Destination{}, false, nil
	}
	if err != nil {
		return pbx.Destination{}, false, err
	}
	o, err := d.cfg.Orgs.GetShared(ctx, id)
	if err != nil {
		return pbx.Destination{}, false, err
	}
	return pbx.Destination{Org: id, Extension: dialled, Number: dialled, Target: "queue:" + owner, Sandbox: o.Sandbox(),
		Barred: o.IsBlocked() || d.suspended(id)}, true, nil
}

// Number returns the destination of one of the platform's numbers: the assigned user or script target, else the number's fallback.
func (d *Directory) Number(ctx context.Context, t pbx.TrunkIn, dialled string) (pbx.Destination, bool, error) {
	e164, ok := number.Parse(dialled, t.Country)
	if !ok {
		return pbx.Destination{}, false, nil
	}
	if n, err := d.boughtInSandbox(ctx, t.Org, t.Sandbox, e164); err != nil {
		return pbx.Destination{}, false, err
	} else if n != nil {
		return d.destinationOf(ctx, n)
	}
	n, ok, err := d.cfg.Numbers.Route(ctx, e164, number.Call{TrunkID: t.ID, Source: t.Source})
	if err != nil || !ok {
		return pbx.Destination{}, false, err
	}
	return d.destinationOf(ctx, n)
}

// boughtInSandbox returns the number that a sandbox bought; nil if it bought none such. It needs no trunk, and calls of the same sandbox
// alone reach it.
func (d *Directory) boughtInSandbox(ctx context.Context, org string, sandbox bool, e164 string) (*number.Number, error) {
	if !sandbox {
		return nil, nil
	}
	n, err := d.cfg.Numbers.Owned(ctx, d.cfg.DB.Read(ctx), org, e164)
	if db.IsNone(err) || err == nil && n.Provider != number.ProviderSandbox {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find number of sandbox: %w", err)
	}
	return &n, nil
}

// destinationOf returns the destination of a number of an organisation.
func (d *Directory) destinationOf(ctx context.Context, n *number.Number) (to pbx.Destination, ok bool, err error) {
	o, err := d.cfg.Orgs.GetShared(ctx, n.OrgID)
	if err != nil {
		return pbx.Destination{}, false, err
	}
	to = pbx.Destination{Org: n.OrgID, NumberID: n.ID, Number: n.Number, TrunkID: textOf(n.TrunkID), Sandbox: o.Sandbox(),
		Barred: o.IsBlocked() || d.suspended(n.OrgID)}
	if n.RecordingMode != "inherit" {
		to.Recording = n.RecordingMode
	}
	switch {
	case n.AssignedTo.ID == nil:
		if n.Fallback != nil {
			to.Target = *n.Fallback
		}
		return to, true, nil
	case n.AssignedTo.Type != "user":
		to.Target = n.AssignedTo.Type + ":" + *n.AssignedTo.ID
		return to, true, nil
	}
	to.UserID, to.ScriptAfterNoAnswer = *n.AssignedTo.ID, n.Fallback != nil
	u, err := d.CachedUser(ctx, n.OrgID, to.UserID)
	if err != nil {
		return to, false, err
	}
	to.Name, to.Extension = u.Name, ExtensionOf(u)
	d.applyUserRules(&to, u)
	return to, true, nil
}
