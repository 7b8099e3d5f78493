package smppserver

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"soniq/internal/messaging/sms"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
	"soniq/internal/protocol/smpp"
)

// handleMessage stores a submitted message like POST /sms, and returns after the commit.
func (s *Service) handleMessage(ctx context.Context, in smpp.Incoming) error {
	org, id := splitAccount(in.Account)
	err := s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		a, err := get(ctx, tx, org, id)
		switch {
		case db.IsNone(err) || err == nil && !a.Enabled:
			return smpp.SubmitFailed
		case err != nil:
			return fmt.Errorf("find application: %w", err)
		}
		if known, err := isSubmitted(ctx, tx, org, in.MessageIDs[0]); known || err != nil {
			return err
		}
		if in.Missing > 0 {
			return s.rejectIncomplete(ctx, tx, a, in)
		}
		return s.submit(ctx, tx, a, in)
	})
	return statusForError(err)
}

// submit stores a complete message, unless it repeats an earlier one whose response may have been lost.
func (s *Service) submit(ctx context.Context, tx db.Querier, a Application, in smpp.Incoming) error {
	id, err := s.findRepeated(ctx, tx, a, in)
	if err != nil {
		return err
	}
	if id != "" {
		return s.acceptRepeated(ctx, tx, a, in, id)
	}
	b, err := s.createRequest(ctx, tx, a, in)
	if err != nil {
		return err
	}
	behalf, err := s.withPrincipal(ctx, a)
	if err != nil {
		return err
	}
	m, err := s.cfg.Messages.Submit(behalf, tx, in.MessageIDs[0], b)
	if err != nil {
		return err
	}
	return s.storeSubmission(ctx, tx, a, in, m.ID, m.ToNumber)
}

// createRequest returns the message as the request of POST /sms.
func (s *Service) createRequest(ctx context.Context, tx db.Querier, a Application, in smpp.Incoming) (b sms.Create, err error) {
	if in.Binary != nil {
		return b, smpp.SubmitFailed
	}
	if !utf8.ValidString(in.From.Digits) {
		return b, smpp.BadSource
	}
	if !utf8.ValidString(in.To.Digits) {
		return b, smpp.BadDestination
	}
	b.Body = in.Text
	if b.SendAt, err = s.parseSchedule(in.Schedule); err != nil {
		return b, smpp.BadSchedule
	}
	from, err := s.senderNumber(ctx, tx, a, in.From)
	if err != nil {
		return b, err
	}
	b.From = from.Number
	b.To, err = s.recipient(ctx, a, in.To)
	return b, err
}

// senderNumber returns the number from which a message is sent, if the application may use it.
func (s *Service) senderNumber(ctx context.Context, tx db.Querier, a Application, from smpp.Address) (sms.OwnNumber, error) {
	n, ok, err := s.cfg.Numbers.OwnNumber(ctx, tx, a.org, from.String())
	if err == nil && !ok && mayBeInternational(from) {
		n, ok, err = s.cfg.Numbers.OwnNumber(ctx, tx, a.org, "+"+from.Digits)
	}
	if err != nil {
		return n, fmt.Errorf("find number: %w", err)
	}
	if !ok || !n.SMS || !a.usesNumber(n.ID) {
		return n, smpp.BadSource
	}
	return n, nil
}

// usesNumber reports whether the application may use a number.
func (a Application) usesNumber(number string) bool {
	for _, id := range a.Numbers {
		if id == number {
			return true
		}
	}
	return len(a.Numbers) == 0
}

// minNumberLength is the lowest number of digits of a complete number without plus.
const minNumberLength = 8

// mayBeInternational reports whether an address may be an international number without the international TON.
func mayBeInternational(a smpp.Address) bool {
	return len(a.Digits) >= minNumberLength && strings.Trim(a.Digits, "0123456789") == ""
}

// recipient returns the recipient as users write it. Digits of unknown type may be an international number without
// plus.
func (s *Service) recipient(ctx context.Context, a Application, to smpp.Address) (string, error) {
	if to.TON == 1 || !mayBeInternational(to) {
		return to.String(), nil
	}
	_, ok, err := s.cfg.Numbers.ParseNumber(ctx, a.org, to.Digits)
	if err == nil && !ok {
		return "+" + to.Digits, nil
	}
	return to.String(), err
}

// parseSchedule converts the schedule time of a message (§7.1.1) to RFC 3339; "" is at once.
func (s *Service) parseSchedule(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	at, err := smpp.ParseTime(text, s.cfg.Clock.Now())
	if err != nil {
		return "", err
	}
	return at.UTC().Format(time.RFC3339), nil
}

// statusForError returns the SMPP status for an error.
func statusForError(err error) error {
	e := apiError(err)
	if e == nil {
		return err
	}
	switch e.Code {
	case "validation_failed":
		return statusForField(e.Fields)
	case "opted_out":
		return smpp.SubmitFailed
	case "destination_not_allowed":
		return smpp.BadDestination
	case "rate_limited", "concurrency_limit":
		return smpp.Throttled
	}
	return err
}

func statusForField(all []op.Violation) smpp.Status {
	if len(all) == 0 {
		return smpp.SubmitFailed
	}
	status, ok := map[string]smpp.Status{"from": smpp.BadSource, "to": smpp.BadDestination, "body": smpp.BadMessageLength,
		"send_at": smpp.BadSchedule}[all[0].Field]
	if !ok {
		return smpp.SubmitFailed
	}
	return status
}
