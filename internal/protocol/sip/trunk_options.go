package sip

import (
	"context"
	"fmt"
	"time"

	"soniq/internal/protocol/sip/resolve"
	"soniq/internal/protocol/sip/sipmsg"
)

// OPTIONS probes of a next hop.

// SendOptions sends OPTIONS to a next hop (RFC 3261 §11) and returns the status of the response and the round-trip
// time. Any status without an error means that the next hop is reachable. 408 with an error means no response, 503
// with an error that the request could not be sent. uri is the request URI. Empty means "sip:" and the next hop.
func (s *Server) SendOptions(ctx context.Context, t resolve.Target, uri string) (status int, rtt time.Duration, err error) {
	if uri == "" {
		uri = "sip:" + t.Host
	}
	u, err := sipmsg.ParseURI(uri)
	if err != nil {
		return 0, 0, fmt.Errorf("sip: options %s: %w", uri, err)
	}
	f, err := s.resolveFlow(ctx, t, u)
	if err != nil {
		return 0, 0, fmt.Errorf("sip: options %s: %w", uri, err)
	}
	began := time.Now()
	res, err := s.sendOutOfDialog(ctx, &outOfDialogRequest{
		method: "OPTIONS", uri: u.String(), callID: sipmsg.NewCallID(), seq: 1, flow: f,
		from: "<sip:" + s.layer.SentBy(f) + ">;tag=" + sipmsg.NewTag(), to: "<" + u.String() + ">",
		extraFields: "Contact: " + s.layer.ContactValue("", f) + "\r\nAccept: " + sipmsg.SDPType + "\r\n",
	})
	if err != nil {
		return 0, 0, fmt.Errorf("sip: options %s: %w", uri, err)
	}
	if !res.fromPeer {
		return res.status, 0, fmt.Errorf("sip: options %s: %w", uri, &StatusError{Method: "OPTIONS", Status: res.status,
			Reason: res.reason})
	}
	return res.status, time.Since(began), nil
}
