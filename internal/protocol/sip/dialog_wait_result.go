package sip

import (
	"context"
	"strings"

	"soniq/internal/protocol/sip/sipmsg"
)

// Waiting for the result of a request inside a dialog; INFO; Allow and Supported.

// Info sends an INFO request and returns once it is answered.
func (l *Leg) Info(ctx context.Context, contentType string, body []byte) error {
	_, err := l.runAndWait(ctx, func(done func(*received, error)) {
		if l.state != legConfirmed {
			done(nil, ErrLegEnded)
			return
		}
		o := requestTemplate{method: "INFO", contentType: sipmsg.SanitizeHeader(contentType), body: body}
		l.sendInDialog(o, l.resultHandler("INFO", done))
	})
	return err
}

// resultHandler returns a callback that turns a final response into a result. It ends the dialog on 408 and 481 (RFC
// 3261 §12.2.1.2).
func (l *Leg) resultHandler(method string, done func(*received, error)) responseFunc {
	return func(m *received, status int) {
		if status < 200 {
			return
		}
		if status < 300 {
			done(m, nil)
			return
		}
		reason := sipmsg.ReasonPhrase(status)
		if m != nil {
			reason = m.Reason
		}
		done(nil, &StatusError{Method: method, Status: status, Reason: reason, Unsent: m == nil && status == 503})
		if status == 408 || status == 481 {
			l.endAsLost(method + ": " + reason)
		}
	}
}

type requestResult struct {
	body []byte
	err  error
}

// runAndWait runs do on the shard and waits for its result.
func (l *Leg) runAndWait(ctx context.Context, do func(done func(*received, error))) ([]byte, error) {
	return l.runAndWaitUntil(ctx, do, nil)
}

// runAndWaitUntil is runAndWait with a callback: if ctx ends first, it runs withdraw on the shard. Either the result
// is returned, or withdraw ran before it.
func (l *Leg) runAndWaitUntil(ctx context.Context, do func(done func(*received, error)), withdraw func()) ([]byte, error) {
	result := make(chan requestResult, 1)
	ok := l.shard.enqueue(func(*shard) {
		do(func(m *received, err error) {
			a := requestResult{err: err}
			if m != nil && m.Body != "" {
				a.body = []byte(m.SDP())
			}
			select {
			case result <- a:
			default:
			}
		})
	})
	if !ok {
		return nil, ErrClosed
	}
	ended := ctx.Done()
	for {
		select {
		case a := <-result:
			return a.body, a.err
		case <-ended:
			if withdraw == nil {
				return nil, ctx.Err()
			}
			ended = nil
			l.enqueue(func() {
				if len(result) == 0 {
					withdraw()
					result <- requestResult{err: ctx.Err()}
				}
			})
		case <-l.shard.srv.done:
			return nil, ErrClosed
		}
	}
}

// capabilityFields returns our Allow and Supported lines, for requests and answers that start or change a session.
func (s *Server) capabilityFields() string {
	return "Allow: " + s.allow + "\r\nSupported: " + sipmsg.SupportedOptions + "\r\n"
}

// lateOfferCapabilityFields is capabilityFields of an INVITE without offer. It leaves out 100rel, because the switch
// could not answer an offer in a provisional response.
func (s *Server) lateOfferCapabilityFields() string {
	return strings.Replace(s.capabilityFields(), "100rel, ", "", 1)
}
