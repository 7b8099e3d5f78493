package sip

import (
	"context"
	"fmt"
	"strings"
)

// NOTIFY outside a subscription.

// Notify sends a registered phone a NOTIFY outside any subscription, such as check-sync, which makes phones fetch
// their configuration again. event is the value of the Event field. It returns the status of the response; a status
// together with an error means that there was no response.
func (s *Server) Notify(ctx context.Context, b Binding, aor, event string) (status int, err error) {
	return s.NotifyWithBody(ctx, b, aor, event, "", nil)
}

// NotifyWithBody is Notify with a body, such as the state of a mailbox for a phone that never subscribed to it.
func (s *Server) NotifyWithBody(ctx context.Context, b Binding, aor, event, contentType string, body []byte) (status int, err error) {
	u, err := ParseURI(b.Contact)
	if err != nil || strings.ContainsAny(aor+event+contentType, "\r\n") {
		return 0, fmt.Errorf("sip: notify %s: %w", b.Contact, err)
	}
	f, extra := s.bindingFlow(&b), ""
	for _, p := range b.Path {
		extra += "Route: <" + strings.Trim(p, "<>") + ">\r\n"
	}
	res, err := s.sendOutOfDialog(ctx, &outOfDialogRequest{
		method: "NOTIFY", uri: u.String(), callID: newCallID(), seq: 1, flow: f,
		from: "<" + aor + ">;tag=" + newTag(), to: "<" + aor + ">",
		extraFields: extra + "Contact: " + s.contactValue("", f) + "\r\nEvent: " + event + "\r\nSubscription-State: terminated\r\n",
		contentType: contentType, body: body,
	})
	if err != nil {
		return 0, fmt.Errorf("sip: notify %s: %w", b.Contact, err)
	}
	if !res.fromPeer {
		return res.status, fmt.Errorf("sip: notify %s: %w", b.Contact, &StatusError{Method: "NOTIFY", Status: res.status, Reason: res.reason})
	}
	return res.status, nil
}
