package device

import (
	"context"
	"fmt"
	"time"

	"soniq/internal/platform/access"
	"soniq/internal/platform/op"
)

// ResyncIn holds the input of Resync.
type ResyncIn struct {
	OneIn
	Body ResyncBody
}

// ResyncBody selects resynchronisation or reboot.
type ResyncBody struct {
	Reboot bool `json:"reboot,omitempty" doc:"Start again, for phones that know that"`
}

// Resynced lists the contacts of a phone that accepted the NOTIFY.
type Resynced struct {
	DeviceID string   `json:"device_id"`
	Contacts []string `json:"contacts" nullable:"false" doc:"Where the phone took the request"`
}

// resyncTime is the time limit for the phone's response.
const resyncTime = 5 * time.Second

// Resync makes a phone fetch its configuration again. It sends a NOTIFY with the event check-sync, or that of the
// phone's template, to each contact of the phone.
func (s *Service) Resync(ctx context.Context, in *ResyncIn) (*op.Out[Resynced], error) {
	org := access.Org(ctx)
	d, err := getDevice(ctx, s.db.Read(ctx), org, in.ID)
	if err != nil {
		return nil, notFound(err)
	}
	all, err := s.Bindings(ctx, org, []string{d.ID})
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, op.State("the phone is not registered", "unregistered")
	}
	event := s.config.Templates.Event(s.Template(d), in.Body.Reboot)
	ctx, cancel := context.WithTimeout(ctx, resyncTime)
	defer cancel()
	out := Resynced{DeviceID: d.ID, Contacts: []string{}}
	refused := 0
	for _, b := range all {
		status, err := s.config.Server.Notify(ctx, b, "sip:"+d.SIP.Username+"@"+s.domain, event)
		switch {
		case err == nil && status < 300:
			out.Contacts = append(out.Contacts, b.Contact)
		case err == nil:
			refused = status
		}
	}
	if len(out.Contacts) > 0 {
		return &op.Out[Resynced]{Body: out}, nil
	}
	if refused != 0 {
		return nil, op.State(fmt.Sprintf("the phone refused with %d", refused), "registered")
	}
	return nil, op.Fail("action_timeout", "the phone did not answer")
}
