package sandbox

import (
	"context"
	"unicode/utf8"

	"soniq/internal/messaging/sms"
	"soniq/internal/platform/access"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/op"
	"soniq/internal/platform/wiring"
)

// Service has the operations of the sandbox. Create it with New.
type Service struct{ cfg Config }

// New returns a service.
func New(c Config) *Service {
	wiring.Check(c)
	c.Clock = clock.OrSystem(c.Clock)
	return &Service{c}
}

// Operations returns the API operations of the sandbox.
func (s *Service) Operations() []op.Operation {
	return []op.Operation{
		op.New("sandbox.sms.inbound", "POST /sandbox/sms/inbound", access.SMSWrite, "Have a message come in", s.InboundSMS).
			Status(201).Only(access.Sandbox),
		op.New("sandbox.calls.inbound", "POST /sandbox/calls/inbound", access.CallsWrite, "Have a call come in", s.InboundCall).
			WithSideEffects().Status(202).Only(access.Sandbox),
		op.New("sandbox.reset", "POST /sandbox/reset", access.UsersAdmin, "Empty the sandbox",
			s.Reset).WithSideEffects().Only(access.Sandbox).
			Fails("invalid_state").About(resetAbout),
	}
}

// SMSIn is the request for an inbound message.
type SMSIn struct{ Body InboundSMS }

// InboundSMS describes an inbound message.
type InboundSMS struct {
	From string `json:"from" maxLength:"40" doc:"Who writes" example:"+12025550199"`
	To   string `json:"to" maxLength:"40" doc:"A number of the organisation" example:"+12025550143"`
	Body string `json:"body" doc:"1 to 1600 characters; STOP, START and HELP do what they do outside" example:"Is my order on its way?"`
}

// InboundSMS stores a message as if a carrier had delivered it.
func (s *Service) InboundSMS(ctx context.Context, in *SMSIn) (*op.Out[sms.Message], error) {
	org := access.Org(ctx)
	from, ok, err := s.cfg.Numbers.ParseNumber(ctx, org, in.Body.From)
	if err != nil {
		return nil, err
	}
	var wrong []op.Violation
	if !ok {
		wrong = append(wrong, op.Field("from", "invalid_e164", "not a valid telephone number"))
	}
	if n := utf8.RuneCountInString(in.Body.Body); n < 1 || n > 1600 {
		wrong = append(wrong, op.Field("body", "invalid_length", "must have 1 to 1600 characters"))
	}
	if len(wrong) > 0 {
		return nil, op.Invalid(wrong...)
	}
	m, err := s.cfg.Messages.Receive(ctx, sms.Incoming{Org: org, From: from, To: in.Body.To, Body: in.Body.Body, Carrier: "sandbox",
		Sandbox: true})
	if err != nil {
		return nil, err
	}
	return &op.Out[sms.Message]{Status: 201, Body: m, Location: op.Prefix + "/sms/" + m.ID}, nil
}
