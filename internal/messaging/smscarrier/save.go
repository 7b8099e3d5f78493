package smscarrier

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// save validates and stores a carrier. The error has all violations at once.
func (s *Service) save(ctx context.Context, tx db.Querier, c *Carrier, settings map[string]any, others []Carrier) error {
	wrong := append(c.validate(others), c.checkRates()...)
	more, err := s.checkNumbers(ctx, tx, c)
	if err != nil {
		return err
	}
	wrong = append(wrong, more...)
	if more, err = s.checkSettings(ctx, c, settings); err != nil {
		return err
	}
	if wrong = append(wrong, more...); len(wrong) > 0 {
		return op.Invalid(wrong...)
	}
	if err := s.upsert(ctx, tx, *c); err != nil {
		return err
	}
	s.publishChange(tx, c.org)
	return nil
}

// validate checks the fields of a carrier that need no look-up.
func (c *Carrier) validate(others []Carrier) (wrong []op.Violation) {
	c.Name = strings.TrimSpace(c.Name)
	if n := utf8.RuneCountInString(c.Name); n < 1 || n > 60 || strings.ContainsFunc(c.Name, func(r rune) bool { return r < ' ' }) {
		wrong = append(wrong, op.Field("name", "invalid_length", "must have 1 to 60 characters"))
	}
	if slices.ContainsFunc(others, func(o Carrier) bool { return o.ID != c.ID && strings.EqualFold(o.Name, c.Name) }) {
		wrong = append(wrong, op.Field("name", "already_exists", "another carrier has this name"))
	}
	if c.Priority < 0 || c.Priority > 1000 {
		wrong = append(wrong, op.Field("priority", "invalid_value", "must be between 0 and 1000"))
	}
	if len(c.Prefixes) > maxPrefixes {
		wrong = append(wrong, op.Field("prefixes", "too_many", fmt.Sprintf("may be %d", maxPrefixes)))
	}
	for i, p := range c.Prefixes {
		if digits, ok := strings.CutPrefix(p, "+"); !ok || digits == "" || len(digits) > 15 || strings.Trim(digits, "0123456789") != "" {
			wrong = append(wrong, op.Field(fmt.Sprintf("prefixes[%d]", i), "invalid_e164", "must be + and 1 to 15 digits"))
			break
		}
	}
	c.Prefixes = append([]string{}, c.Prefixes...)
	return wrong
}

// checkNumbers validates the numbers of a carrier and converts them to E.164.
func (s *Service) checkNumbers(ctx context.Context, tx db.Querier, c *Carrier) (wrong []op.Violation, err error) {
	if len(c.Numbers) > maxNumbers {
		return []op.Violation{op.Field("numbers", "too_many", fmt.Sprintf("may be %d", maxNumbers))}, nil
	}
	all := make([]string, 0, len(c.Numbers))
	for i, text := range c.Numbers {
		n, ok, err := s.cfg.Numbers.OwnNumber(ctx, tx, c.org, text)
		if err != nil {
			return nil, fmt.Errorf("find number: %w", err)
		}
		if !ok {
			wrong = append(wrong, op.Field(fmt.Sprintf("numbers[%d]", i), "number_not_owned", "not a number of your organisation"))
		}
		all = append(all, n.Number)
	}
	if wrong == nil {
		c.Numbers = all
	}
	return wrong, nil
}

// checkSettings has the provider validate the settings, and stores them in c.
func (s *Service) checkSettings(ctx context.Context, c *Carrier, settings map[string]any) (wrong []op.Violation, err error) {
	o, err := s.cfg.Orgs.Get(ctx, c.org)
	if err != nil {
		return nil, fmt.Errorf("find organisation: %w", err)
	}
	if settings == nil {
		settings = map[string]any{}
	}
	raw, err := json.Marshal(settings)
	p, ok := providerOf(c.Provider)
	switch {
	case o.Sandbox():
		return []op.Violation{op.Field("provider", "not_available", "messages of sandboxes go to the test numbers")}, nil
	case !ok:
		return []op.Violation{op.Field("provider", "not_available", "can be one of "+providerNames())}, nil
	case err != nil || len(raw) > maxSettings:
		return []op.Violation{op.Field("settings", "invalid_length", "may have 32 kB")}, nil
	}
	c.secret.Settings = raw
	_, wrong = p.build(s, s.carrierInfo(*c, p), raw)
	return wrong, nil
}

func (s *Service) carrierInfo(c Carrier, p provider) CarrierInfo {
	f := CarrierInfo{Org: c.org, ID: c.ID}
	if p.hasCallback {
		f.CallbackURL = s.callbackURL(c)
	}
	return f
}
