package sip

import (
	"context"
	"strings"
)

// Waiting for the result of a request inside a dialog; INFO; Allow and Supported.

// Info sends an INFO request and returns once it is answered.
func (l *Leg) Info(ctx context.Context, contentType string, body []byte) error {
	_, err := l.ask(ctx, func(done func(*message, error)) {
		if l.state != legConfirmed {
			done(nil, ErrOver)
			return
		}
		l.transact(outline{method: "INFO", contentType: clean(contentType), body: body}, l.judge("INFO", done))
	})
	return err
}

// resultHandler returns a callback that turns a final response into a result. It ends the dialog on 408 and 481 (RFC
// 3261 §12.2.1.2).
func (l *Leg) judge(method string, done func(*message, error)) reply {
	return func(m *message, status int) {
		if status < 200 {
			return
		}
		if status < 300 {
			done(m, nil)
			return
		}
		reason := phrase(status)
		if m != nil {
			reason = m.reason
		}
		done(nil, &StatusError{Method: method, Status: status, Reason: reason, Unsent: m == nil && status == 503})
		if status == 408 || status == 481 {
			l.lose(method + ": " + reason)
		}
	}
}

type answer struct {
	body []byte
	err  error
}

// runAndWait runs do on the shard and waits for its result.
func (l *Leg) ask(ctx context.Context, do func(done func(*message, error))) ([]byte, error) {
	return l.askUntil(ctx, do, nil)
}

// runAndWaitUntil is runAndWait with a callback: if ctx ends first, it runs withdraw on the shard. Either the result
// is returned, or withdraw ran before it.
func (l *Leg) askUntil(ctx context.Context, do func(done func(*message, error)), withdraw func()) ([]byte, error) {
	result := make(chan answer, 1)
	ok := l.shard.post(func(*shard) {
		do(func(m *message, err error) {
			a := answer{err: err}
			if m != nil && m.body != "" {
				a.body = []byte(m.body)
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
			l.post(func() {
				if len(result) == 0 {
					withdraw()
					result <- answer{err: ctx.Err()}
				}
			})
		case <-l.shard.srv.done:
			return nil, ErrClosed
		}
	}
}

// capabilityFields returns our Allow and Supported lines, for requests and answers that start or change a session.
func (s *Server) able() string { return "Allow: " + s.allow + "\r\nSupported: " + supported + "\r\n" }

// lateOfferCapabilityFields is capabilityFields of an INVITE without offer. It leaves out 100rel, because the switch
// could not answer an offer in a provisional response.
func (s *Server) ableLate() string { return strings.Replace(s.able(), "100rel, ", "", 1) }
