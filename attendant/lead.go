package attendant

import (
	"context"
	"strings"

	"soniq/flow"
	"soniq/pbx"
)

// room is what leads callers to destinations of a kind; nil for those that are dialled.
func (s *Service) room(to string) Room {
	kind, _, _ := strings.Cut(to, ":")
	switch kind {
	case "queue":
		return s.Queue
	case "voicemail":
		return s.Mailbox
	case "user":
		return s.Person
	}
	return nil
}

// attend leads a caller to where they are to go.
func (s *Service) attend(ctx context.Context, v *pbx.Visit, l pbx.Lead) {
	s.follow(ctx, v, l)
}

// lead leads a caller to any destination: queue:, flow:, voicemail:, user:, ext:, a number or sip:. It is Failed where the caller was led
// on too often already, so that queues and flows that lead to each other end.
func (s *Service) lead(ctx context.Context, v *pbx.Visit, to string) (outcome string) {
	return s.follow(ctx, v, pbx.Lead{Org: "", To: to})
}

func (s *Service) follow(ctx context.Context, v *pbx.Visit, l pbx.Lead) (outcome string) {
	if !step(ctx) {
		return Failed
	}
	_, id, _ := strings.Cut(l.To, ":")
	if r := s.room(l.To); r != nil {
		return r(ctx, v, id, l)
	}
	return Failed
}

// A trip is the way of one caller from the beginning of a visit.
type trip struct{ steps int }

type tripKey struct{}

func withTrip(ctx context.Context) context.Context {
	return context.WithValue(ctx, tripKey{}, &trip{})
}

// step counts one more step of the caller's trip; false where there were too many.
func step(ctx context.Context) bool {
	t, ok := ctx.Value(tripKey{}).(*trip)
	if !ok {
		return false
	}
	t.steps++
	return t.steps <= flow.MaxSteps
}
