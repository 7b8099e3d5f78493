package smscarrier

import (
	"context"
	"strings"
)

// maxSender bounds what a sender may be called; longer names are cut.
const maxSender = 40

// forms are how a number that a carrier writes may be meant: carriers leave the plus out, or write 00.
func forms(text string) []string {
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

// outside is who a message is from: a number in E.164 where it is one, else what the carrier writes, such as a name or a short code.
func (s *Service) outside(ctx context.Context, org, text string) (string, error) {
	for _, form := range forms(text) {
		e164, ok, err := s.Phone(ctx, org, form)
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

// ours is the number of the organisation that a message is for.
func (s *Service) ours(ctx context.Context, org, text string) (string, error) {
	for _, form := range forms(text) {
		if strings.HasPrefix(form, "num_") {
			break
		}
		n, ok, err := s.Number(ctx, s.DB.Read(ctx), org, form)
		if err != nil {
			return "", err
		}
		if ok {
			return n.Number, nil
		}
	}
	return "", errStranger
}
