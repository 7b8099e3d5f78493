package sip

import (
	"context"
	"fmt"
	"time"
)

// Options asks a next hop whether it is there (RFC 3261 §11) and returns its
// answer's status and how long that took. Any status means that somebody is
// there; 408 and 503 with an error mean that nobody answered, or that nothing
// could be sent. uri is the request URI, "sip:" and the next hop when empty.
func (s *Server) Options(ctx context.Context, t Target, uri string) (status int, rtt time.Duration, err error) {
	if uri == "" {
		uri = "sip:" + t.Host
	}
	u, err := ParseURI(uri)
	if err != nil {
		return 0, 0, fmt.Errorf("sip: options %s: %w", uri, err)
	}
	f, err := s.resolve(ctx, t, u)
	if err != nil {
		return 0, 0, fmt.Errorf("sip: options %s: %w", uri, err)
	}
	began := time.Now()
	res, err := s.exchange(ctx, &errand{
		method: "OPTIONS", uri: u.String(), callID: newCallID(), seq: 1, flow: f,
		from: "<sip:" + s.sentBy(f) + ">;tag=" + newTag(), to: "<" + u.String() + ">",
		extra: "Contact: " + s.contact("", f) + "\r\nAccept: " + sdpType + "\r\n",
	})
	if err != nil {
		return 0, 0, fmt.Errorf("sip: options %s: %w", uri, err)
	}
	if !res.heard {
		return res.status, 0, fmt.Errorf("sip: options %s: %w", uri, &StatusError{Method: "OPTIONS", Status: res.status, Reason: res.reason})
	}
	return res.status, time.Since(began), nil
}
