package sandbox

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"soniq/internal/platform/access"
	"soniq/internal/platform/op"
)

// CallIn is the request for an inbound test call.
type CallIn struct{ Body InboundCall }

// InboundCall describes an inbound test call.
type InboundCall struct {
	From   string `json:"from" maxLength:"40" doc:"Who calls" example:"+12025550199"`
	To     string `json:"to" maxLength:"40" doc:"A number of the organisation" example:"+12025550143"`
	Script []Step `json:"script,omitempty" maxItems:"50" doc:"What the caller does once somebody answers: one thing a step; it then hangs up. Half a minute of speech unless given"`
}

// Step is one action of a simulated caller.
type Step struct {
	Say    string   `json:"say,omitempty" maxLength:"1000"`
	DTMF   string   `json:"dtmf,omitempty" maxLength:"50" doc:"Digits to press: 0-9 * # A-D, w waits half a second"`
	Wait   *float64 `json:"wait,omitempty" doc:"Seconds, at most 60"`
	Hangup bool     `json:"hangup,omitempty"`
}

// Calling describes a test call in progress.
type Calling struct {
	CallID string `json:"call_id" doc:"The call, as in GET /calls/{id}"`
	From   string `json:"from_number"`
	To     string `json:"to_number"`
}

// SimulatedCall describes a simulated caller: its number, the called number and its script.
type SimulatedCall struct {
	Org, From, To string
	Script        []Step
}

// WaitTime returns the duration of a pause step.
func (s Step) WaitTime() time.Duration {
	if s.Wait == nil {
		return 0
	}
	return time.Duration(*s.Wait * float64(time.Second))
}

// InboundCall places a call of a simulated caller to a number of the organisation. It returns once the call rings, is answered or
// is refused.
func (s *Service) InboundCall(ctx context.Context, in *CallIn) (*op.Out[Calling], error) {
	org := access.Org(ctx)
	from, ok, err := s.cfg.Numbers.ParseNumber(ctx, org, in.Body.From)
	if err != nil {
		return nil, err
	}
	wrong := validateSteps(in.Body.Script)
	if !ok {
		wrong = append(wrong, op.Field("from", "invalid_e164", "not a valid telephone number"))
	}
	if len(wrong) > 0 {
		return nil, op.Invalid(wrong...)
	}
	id, to, err := s.cfg.Callers.Call(ctx, SimulatedCall{Org: org, From: from, To: in.Body.To, Script: in.Body.Script})
	if err != nil {
		return nil, err
	}
	return op.OK(Calling{CallID: id, From: from, To: to})
}

func validateSteps(all []Step) (wrong []op.Violation) {
	for i, s := range all {
		given := 0
		for _, is := range []bool{s.Say != "", s.DTMF != "", s.Wait != nil, s.Hangup} {
			if is {
				given++
			}
		}
		field := fmt.Sprintf("script[%d]", i)
		switch {
		case given != 1:
			wrong = append(wrong, op.Field(field, "ambiguous", "give one of say, dtmf, wait and hangup"))
		case s.Wait != nil && (*s.Wait < 0 || *s.Wait > 60):
			wrong = append(wrong, op.Field(field+".wait", "out_of_range", "must be 0 to 60 seconds"))
		case strings.Trim(s.DTMF, "0123456789*#ABCDabcdwW") != "":
			wrong = append(wrong, op.Field(field+".dtmf", "invalid_value", "digits are 0-9 * # A-D and w"))
		case utf8.RuneCountInString(s.Say) > 1000:
			wrong = append(wrong, op.Field(field+".say", "invalid_length", "at most 1000 characters"))
		}
	}
	return wrong
}
