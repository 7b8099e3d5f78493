package phonestate

import (
	"bytes"
	"context"
	"encoding/xml"
	"strconv"
	"strings"
	"sync"
	"time"

	"soniq/internal/contactcenter/agent"
	"soniq/internal/platform/db"
	"soniq/internal/protocol/sip"
	"soniq/internal/protocol/sip/sipmsg"
)

// Busy lamp field (BLF, dialog event package, RFC 4235): NOTIFY with the state of a colleague's calls.

// PresenceChanged is the bus subject of users whose presence changed. Its messages are of type Users.
const PresenceChanged = "changed.presence"

// Users names users of an organisation.
type Users struct {
	Org string
	IDs []string
}

// BusyLampField notifies phones of the state of their colleagues' calls. Create it with NewBusyLampField.
type BusyLampField struct {
	cfg  Config
	sip  *sip.Server
	work sync.WaitGroup
	stop context.CancelFunc

	mu     sync.Mutex             // guards states
	states map[string]cachedState // by "org user"
}

// cachedState is the dialog state of a user's calls (RFC 4235 §3.7.1) at a time.
type cachedState struct {
	state string
	at    time.Time
}

const (
	dialogEvent = "dialog"
	dialogType  = "application/dialog-info+xml"
	// stateCacheTime is how long a state is reused, because one change notifies many phones.
	stateCacheTime = time.Second
	maxStates      = 100_000
)

// NewBusyLampField returns a BusyLampField that is not started.
func NewBusyLampField(c Config) *BusyLampField {
	return &BusyLampField{cfg: c, states: map[string]cachedState{}}
}

// Topic returns the event package "dialog". Phones subscribe to an extension of their organisation. The other party of a call is not
// published.
func (f *BusyLampField) Topic() sip.EventPackage { return dialogPackage{f} }

// dialogPackage is the event package "dialog".
type dialogPackage struct{ *BusyLampField }

// Event returns the name of the event package.
func (f dialogPackage) Event() string { return dialogEvent }

// ContentType returns the type of its documents.
func (f dialogPackage) ContentType() string { return dialogType }

// Body returns the state of a user's calls.
func (f dialogPackage) Body(ctx context.Context, subject string, resource sipmsg.URI) ([]byte, bool, error) {
	state, err := f.state(ctx, subject)
	return dialogInfo(resource, state), err == nil && state != "", err
}

// ResolveSubject returns the user that an account means by an extension, as "org user".
func (f dialogPackage) ResolveSubject(ctx context.Context, account string, resource sipmsg.URI) (string, bool, error) {
	a, ok, err := f.cfg.Devices.Account(ctx, account)
	if err != nil || !ok {
		return "", false, err
	}
	u, err := f.cfg.Users.ByExtension(ctx, f.cfg.DB.Read(ctx), a.OrgID, resource.User)
	if db.IsNone(err) {
		return "", false, nil
	}
	return a.OrgID + " " + u.ID, err == nil, err
}

// state returns the dialog state of a user: early, confirmed or terminated. It is empty if the user does not exist any more.
func (f *BusyLampField) state(ctx context.Context, subject string) (string, error) {
	f.mu.Lock()
	known, ok := f.states[subject]
	f.mu.Unlock()
	if ok && time.Since(known.at) < stateCacheTime {
		return known.state, nil
	}
	org, id, _ := strings.Cut(subject, " ")
	all, err := f.cfg.Agents.Presences(ctx, f.cfg.DB.Read(ctx), org, []string{id})
	if err != nil {
		return "", err
	}
	p, ok := all[id]
	switch {
	case !ok:
		return "", nil
	case p.Status == agent.Ringing:
		return "early", nil
	case p.Status == agent.Busy:
		return "confirmed", nil
	}
	return "terminated", nil
}

// Start sends notifications through a SIP server until Close or the end of the context.
func (f *BusyLampField) Start(ctx context.Context, s *sip.Server) {
	f.sip = s
	ctx, f.stop = context.WithCancel(ctx)
	changes := f.cfg.Bus.Subscribe(PresenceChanged, 4096)
	f.work.Go(func() {
		defer changes.Close()
		for {
			select {
			case m := <-changes.C:
				u := m.(Users)
				for _, id := range u.IDs {
					f.changed(ctx, u.Org+" "+id)
				}
			case <-ctx.Done():
				return
			}
		}
	})
}

// Close stops the notifications and waits for those in progress.
func (f *BusyLampField) Close() {
	if f.stop != nil {
		f.stop()
		f.work.Wait()
	}
}

// changed notifies the subscribers of a user if the dialog state changed.
func (f *BusyLampField) changed(ctx context.Context, subject string) {
	if len(f.sip.SubscriberAddrs(dialogEvent, subject)) == 0 {
		return
	}
	f.mu.Lock()
	before := f.states[subject].state
	delete(f.states, subject)
	f.mu.Unlock()
	state, err := f.state(ctx, subject)
	if err != nil {
		f.cfg.Log.Warn("busy lamp field not sent", "err", err)
		return
	}
	f.mu.Lock()
	if len(f.states) >= maxStates {
		clear(f.states)
	}
	f.states[subject] = cachedState{state, time.Now()}
	f.mu.Unlock()
	if state != before {
		f.sip.NotifySubscribers(dialogEvent, subject)
	}
}

// dialogInfo returns the full state of a user's calls as one dialog (RFC 4235 §4).
func dialogInfo(resource sipmsg.URI, state string) []byte {
	var name, entity bytes.Buffer
	_ = xml.EscapeText(&name, []byte(resource.User))
	_ = xml.EscapeText(&entity, []byte(resource.String()))
	return []byte(`<?xml version="1.0"?>` + "\n" +
		`<dialog-info xmlns="urn:ietf:params:xml:ns:dialog-info" version="0" state="full" entity="` + entity.String() + `">` +
		"\n" + `<dialog id="` + name.String() + `" direction="recipient"><state>` + state + "</state></dialog>\n</dialog-info>\n")
}

// SetVersion sets the version of a document (RFC 4235 §4.1), which increases with each notification of a subscription.
func (f dialogPackage) SetVersion(body []byte, n uint32) []byte {
	return bytes.Replace(body, []byte(`version="0"`), []byte(`version="`+strconv.FormatUint(uint64(n), 10)+`"`), 1)
}
