package smscarrier

import (
	"encoding/json"
	"strings"

	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// Carrier is an SMS carrier of an organisation.
type Carrier struct {
	ID            string         `json:"id" example:"smc_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
	Provider      string         `json:"provider" enum:"smpp,telnyx,twilio,http"`
	Name          string         `json:"name"`
	Enabled       bool           `json:"enabled"`
	Status        string         `json:"status" enum:"active,connecting,degraded,auth_required,disabled"`
	LastError     *string        `json:"last_error" doc:"What keeps it from working; null while it works"`
	Priority      int            `json:"priority" doc:"Of carriers for the same prefix the lowest is asked first"`
	Prefixes      []string       `json:"prefixes" nullable:"false" doc:"Beginnings of the numbers it takes messages to; empty: all. The longest wins"`
	Numbers       []string       `json:"numbers" nullable:"false" doc:"Your numbers whose messages it takes; empty: all"`
	RatePerSecond float64        `json:"rate_per_second" doc:"Messages (segments) it is given in a second at most"`
	NumberRate    float64        `json:"number_rate_per_second" doc:"Of those, from one of your numbers"`
	Settings      map[string]any `json:"settings" doc:"Secrets are shown as asterisks"`
	CallbackURL   *string        `json:"callback_url" secret:"true" doc:"Where the provider is to post receipts and messages; null for those that need none"`
	CreatedAt     db.Time        `json:"created_at"`
	UpdatedAt     db.Time        `json:"updated_at"`

	org    string
	secret secret
}

// secret is the encrypted part of a carrier.
type secret struct {
	Token    string          `json:"token"` // in the callback URL
	Settings json.RawMessage `json:"settings"`
}

// Limits and defaults of carriers.
const (
	maxCarriers       = 20
	defaultPriority   = 100
	defaultRate       = 10
	defaultNumberRate = 1
	maxRate           = 5000
	maxPrefixes       = 500
	maxNumbers        = 500
	maxSettings       = 32 << 10
)

// Changed is the bus subject for changes of carriers; the key is the organisation.
const Changed = "changed.sms_carriers"

// CallbackPath is the path to which providers post; the token of a carrier follows.
const CallbackPath = "/carriers/sms/"

// associatedData binds sealed settings to their row and column.
func (c Carrier) associatedData() []byte {
	return []byte(c.org + "|sms_carriers|" + c.ID + "|settings")
}

// callbackURL returns the URL to which the provider of a carrier posts.
func (s *Service) callbackURL(c Carrier) string {
	return strings.TrimRight(s.cfg.BaseURL, "/") + CallbackPath + c.secret.Token
}

// addStatus sets the fields of a carrier that the API shows: masked settings, callback URL and status.
func (s *Service) addStatus(c *Carrier, is carrierState) {
	c.Settings = map[string]any{}
	_ = json.Unmarshal(c.secret.Settings, &c.Settings)
	c.Settings = op.MaskSettings(c.Settings)
	c.CallbackURL, c.LastError = nil, nil
	p, _ := providerOf(c.Provider)
	if p.hasCallback {
		address := s.callbackURL(*c)
		c.CallbackURL = &address
	}
	c.Status = is.Status
	if is.Error != "" {
		c.LastError = &is.Error
	}
	switch {
	case !c.Enabled:
		c.Status, c.LastError = disabled, nil
	case c.Status == "" && p.hasConnection:
		c.Status = connecting
	case c.Status == "":
		c.Status = active
	}
}

// matchLength returns the number of characters of the longest prefix that matches. It is 0 for a carrier without prefixes, and -1 if the
// carrier does not match.
func (c Carrier) matchLength(from, to string) int {
	if len(c.Numbers) > 0 && !contains(c.Numbers, from) {
		return -1
	}
	if len(c.Prefixes) == 0 {
		return 0
	}
	best := -1
	for _, p := range c.Prefixes {
		if strings.HasPrefix(to, p) {
			best = max(best, len(p))
		}
	}
	return best
}

func contains(all []string, one string) bool {
	for _, x := range all {
		if x == one {
			return true
		}
	}
	return false
}

// checkRates validates the two rates.
func (c Carrier) checkRates() (wrong []op.Violation) {
	if c.RatePerSecond < 0.01 || c.RatePerSecond > maxRate {
		wrong = append(wrong, op.Field("rate_per_second", "out_of_range", "must be between 0.01 and 5000"))
	}
	if c.NumberRate < 0.01 || c.NumberRate > maxRate {
		wrong = append(wrong, op.Field("number_rate_per_second", "out_of_range", "must be between 0.01 and 5000"))
	}
	return wrong
}
