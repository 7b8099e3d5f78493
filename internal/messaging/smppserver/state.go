package smppserver

import (
	"context"
	"fmt"

	"soniq/internal/messaging/sms"
	"soniq/internal/platform/db"
	"soniq/internal/protocol/smpp"
)

// stateOf returns the state of a message for receipts (§5.2.28), and the error code.
func stateOf(m sms.Message) (smpp.State, string) {
	switch {
	case m.Status == sms.Delivered:
		return smpp.Delivered, "000"
	case m.Canceled():
		return smpp.Deleted, "000"
	case !m.Final():
		return smpp.Enroute, "000"
	case m.Error == nil:
		return smpp.Undeliverable, "001"
	}
	x, ok := faults[m.Error.Code]
	if !ok {
		x = faultState{smpp.Undeliverable, 1}
	}
	return x.state, fmt.Sprintf("%03d", x.code)
}

type faultState struct {
	state smpp.State
	code  uint8
}

// faults maps fault codes to the states and error codes in receipts and query responses.
var faults = map[string]faultState{
	"unreachable":         {smpp.Undeliverable, 1},
	"invalid_destination": {smpp.Undeliverable, 2},
	"carrier_rejected":    {smpp.Rejected, 3},
	"blocked":             {smpp.Rejected, 4},
	"opted_out":           {smpp.Rejected, 5},
	"expired":             {smpp.Expired, 6},
	"rate_limited":        {smpp.Undeliverable, 7},
	"unknown":             {smpp.Unknown, 8},
}

// queryStatus returns the state of a message of an application (query_sm, §4.8).
func (s *Service) queryStatus(ctx context.Context, account, id string) (a smpp.QueryResponse, err error) {
	org, application := splitAccount(account)
	x, err := getSubmission(ctx, s.cfg.DB.Read(ctx), org, id)
	if db.IsNone(err) || err == nil && x.application != application {
		return a, smpp.BadMessageID
	}
	if err != nil || x.message == "" {
		return smpp.QueryResponse{State: smpp.Undeliverable}, err
	}
	m, err := s.cfg.Messages.Find(ctx, s.cfg.DB.Read(ctx), org, x.message)
	if err != nil {
		return a, smpp.BadMessageID
	}
	a.State, _ = stateOf(m)
	if m.Status == sms.Delivered {
		a.FinalDate = smpp.FormatTime(m.DeliveredAt.Time)
	}
	if m.Error != nil {
		a.ErrorCode = faults[m.Error.Code].code
	}
	return a, nil
}
