package smscarrier

import (
	"context"
	"errors"
	"strings"

	"soniq/internal/messaging/sms"
)

// maxSender bounds the length of an alphanumeric sender; longer ones are cut.
const maxSender = 40

// numberForms returns the possible readings of a number as a carrier writes it. Carriers omit the plus, or write 00.
func numberForms(text string) []string {
	text = strings.TrimSpace(text)
	if text == "" || strings.Trim(text, "+0123456789") != "" {
		return []string{text}
	}
	if strings.HasPrefix(text, "+") {
		return []string{text}
	}
	if rest, ok := strings.CutPrefix(text, "00"); ok {
		return []string{"+" + rest, text}
	}
	return []string{"+" + text, text}
}

// senderAddress returns the sender of a message: in E.164 if it is a number, else as the carrier writes it, such as a
// name or a short code.
func (s *Service) senderAddress(ctx context.Context, org, text string) (string, error) {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "?"), "\x00", "?")
	for _, form := range numberForms(text) {
		e164, ok, err := s.cfg.Numbers.ParseNumber(ctx, org, form)
		if err != nil {
			return "", err
		}
		if ok && len(e164) > 7 {
			return e164, nil
		}
	}
	if text = strings.TrimSpace(text); text == "" {
		return "unknown", nil
	}
	if len(text) > maxSender {
		text = text[:maxSender]
	}
	return strings.ToValidUTF8(text, "?"), nil
}

// ownRecipient returns the first recipient of a message that is a number of the organisation.
func (s *Service) ownRecipient(ctx context.Context, org string, in Incoming) (string, error) {
	to, err := s.recipientNumber(ctx, org, in.To)
	for _, other := range in.Others {
		if !errors.Is(err, errForeignNumber) {
			break
		}
		to, err = s.recipientNumber(ctx, org, other)
	}
	return to, err
}

// recipientNumber returns the organisation's number to which a message is addressed.
func (s *Service) recipientNumber(ctx context.Context, org, text string) (string, error) {
	if !sms.IsReadable(text) {
		return "", errForeignNumber
	}
	for _, form := range numberForms(text) {
		if strings.HasPrefix(form, "num_") {
			break
		}
		n, ok, err := s.cfg.Numbers.OwnNumber(ctx, s.cfg.DB.Read(ctx), org, form)
		if err != nil {
			return "", err
		}
		if ok {
			return n.Number, nil
		}
	}
	return "", errForeignNumber
}
