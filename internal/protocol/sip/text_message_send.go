package sip

import (
	"context"
	"fmt"
)

// MESSAGE requests sent (RFC 3428).

// OutgoingMessage is a MESSAGE to send to a registered phone (RFC 3428).
type OutgoingMessage struct {
	Binding  Binding
	From, To Address // empty hosts mean our own address
	CallID   string  // generated if empty
	Body     []byte  // UTF-8
}

// SendMessage sends a MESSAGE and returns the status of its final response. A *StatusError means that there was no
// response: with Unsent the request never left, otherwise the phone may have the message. Any other error leaves that
// open as well.
func (s *Server) SendMessage(ctx context.Context, t OutgoingMessage) (status int, err error) {
	u, err := ParseURI(t.Binding.Contact)
	if err != nil {
		return 0, fmt.Errorf("sip: message %s: %w", t.Binding.Contact, err)
	}
	f := s.bindingFlow(&t.Binding)
	if t.CallID == "" {
		t.CallID = newCallID()
	}
	e := &outOfDialogRequest{method: "MESSAGE", uri: u.String(), callID: t.CallID, seq: 1, flow: f, contentType: "text/plain;charset=UTF-8", body: t.Body}
	from, to := t.From, t.To
	if from.URI.Host == "" {
		from.URI.Host = s.publicHost()
	}
	if to.URI.Host == "" {
		to.URI.Host = s.publicHost()
	}
	e.from, e.to = string(from.append(nil))+";tag="+newTag(), string(to.append(nil))
	for _, p := range t.Binding.Path {
		e.extraFields += "Route: <" + p + ">\r\n"
	}
	res, err := s.sendOutOfDialog(ctx, e)
	if err != nil {
		return 0, fmt.Errorf("sip: message %s: %w", t.Binding.Contact, err)
	}
	if !res.fromPeer {
		return 0, &StatusError{Method: "MESSAGE", Status: res.status, Reason: res.reason, Unsent: res.status == 503}
	}
	return res.status, nil
}
