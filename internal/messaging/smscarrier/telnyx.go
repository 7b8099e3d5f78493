package smscarrier

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"soniq/internal/messaging/sms"
	"soniq/internal/platform/op"
	"soniq/internal/platform/strictjson"
)

// TelnyxSettings are the settings of a Telnyx account (API v2).
type TelnyxSettings struct {
	APIKey             string `json:"api_key"`
	PublicKey          string `json:"public_key"`           // base64; verifies callbacks
	MessagingProfileID string `json:"messaging_profile_id"` // may be empty: the profile of the number
	URL                string `json:"url"`                  // of the API, if it is not the default
}

const telnyxURL = "https://api.telnyx.com/v2"

// maxClockSkew is the highest difference between the timestamp of a signed callback and our clock. Older callbacks
// may be replayed.
const maxClockSkew = 5 * time.Minute

// telnyxCodes maps error codes of Telnyx to fault codes.
var telnyxCodes = map[string]string{
	"40300": "opted_out",
	"40001": "invalid_destination", "40310": "invalid_destination", "10002": "invalid_destination", "10016": "invalid_destination",
	"40002": "blocked", "40003": "blocked", "40005": "expired", "40006": "unreachable", "40008": "unreachable", "40011": "rate_limited",
}

// telnyxAdapter is the adapter for Telnyx.
type telnyxAdapter struct {
	TelnyxSettings
	info   CarrierInfo
	key    ed25519.PublicKey
	client *http.Client
	now    func() time.Time
}

func buildTelnyx(s *Service, about CarrierInfo, raw json.RawMessage) (Adapter, []op.Violation) {
	t := &telnyxAdapter{info: about, client: s.cfg.Guard.Client(vendorLimits), now: s.cfg.Clock.Now}
	if wrong := op.DecodeSettings(raw, &t.TelnyxSettings); wrong != nil {
		return nil, wrong
	}
	wrong := checkVendorURL(s.cfg.Guard, &t.URL, telnyxURL)
	requireText(&wrong, "api_key", t.APIKey, false)
	requireText(&wrong, "messaging_profile_id", t.MessagingProfileID, true)
	key, err := base64.StdEncoding.DecodeString(t.PublicKey)
	if err != nil || len(key) != ed25519.PublicKeySize {
		wrong = append(wrong, op.Field("settings.public_key", "invalid_value",
			"must be the public key of the account, 32 octets in base64"))
	}
	t.key = key
	return t, wrong
}

// telnyxMessage is the body of POST /messages.
type telnyxMessage struct {
	From        string   `json:"from"`
	To          string   `json:"to"`
	Text        string   `json:"text"`
	Profile     string   `json:"messaging_profile_id,omitempty"`
	Media       []string `json:"media_urls,omitempty"`
	WebhookURL  string   `json:"webhook_url,omitempty"`
	UseProfiles *bool    `json:"use_profile_webhooks,omitempty"`
}

// telnyxErrors are the errors in a response.
type telnyxErrors []struct{ Code, Title, Detail string }

// Send posts a message.
func (t *telnyxAdapter) Send(ctx context.Context, o sms.Outgoing) (sms.Result, error) {
	m := telnyxMessage{From: o.From, To: o.To, Text: o.Body, Profile: t.MessagingProfileID, Media: mediaURLs(o.Media),
		WebhookURL: t.info.CallbackURL}
	if m.WebhookURL != "" {
		m.UseProfiles = new(bool)
	}
	raw, err := json.Marshal(m)
	if err != nil {
		return sms.Result{}, fmt.Errorf("%w: %w", sms.ErrUnsent, err)
	}
	r, err := http.NewRequest(http.MethodPost, t.URL+"/messages", bytes.NewReader(raw))
	if err != nil {
		return sms.Result{}, fmt.Errorf("%w: %w", sms.ErrUnsent, err)
	}
	r.Header.Set("Authorization", "Bearer "+t.APIKey)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json")
	a, err := doRequest(ctx, t.client, r)
	if err == nil {
		err = a.generalError()
	}
	if err != nil {
		return sms.Result{}, err
	}
	return t.parseResponse(a)
}

// parseResponse returns the result for a response.
func (t *telnyxAdapter) parseResponse(a vendorResponse) (sms.Result, error) {
	var doc struct {
		Data   struct{ ID string }
		Errors telnyxErrors
	}
	if a.status < 300 {
		if err := a.decode(&doc); err != nil {
			return sms.Result{}, err
		}
		if doc.Data.ID == "" {
			return sms.Result{}, fmt.Errorf("%w: the response has no message id", sms.ErrOutcomeUnknown)
		}
		return sms.Result{Status: sms.Sent, IDs: []string{doc.Data.ID}}, nil
	}
	_ = json.Unmarshal(strictjson.WithoutDamaged(a.raw), &doc)
	code, message := doc.Errors.first()
	switch {
	case code == "10009", code == "10010", code == "" && a.status == http.StatusForbidden:
		return sms.Result{}, a.authError()
	case code == "10011":
		return sms.Result{}, &sms.BusyError{After: retryAfter(a.header), Cause: fmt.Errorf("answered with %s", code)}
	case code == "":
		code = strconv.Itoa(a.status)
	}
	return refusedResult(vendorFault(telnyxCodes, code, message)), nil
}

func (e telnyxErrors) first() (code, message string) {
	if len(e) == 0 {
		return "", ""
	}
	if e[0].Detail != "" {
		return e[0].Code, e[0].Detail
	}
	return e[0].Code, e[0].Title
}

// telnyxEvent is a webhook.
type telnyxEvent struct {
	Data struct {
		Type    string `json:"event_type"`
		Payload struct {
			ID   string
			From struct {
				Number string `json:"phone_number"`
			}
			To, CC []telnyxRecipient
			Text   string
			Media  []struct {
				URL  string
				Type string `json:"content_type"`
				Size int64
			}
			Errors telnyxErrors
		}
	}
}

type telnyxRecipient struct {
	Number string `json:"phone_number"`
	Status string
}

// ParseCallback parses a webhook: message.received and message.finalized. Others, such as message.sent, give no
// events.
func (t *telnyxAdapter) ParseCallback(r *http.Request, raw []byte) ([]Event, error) {
	if err := t.verify(r.Header, raw); err != nil {
		return nil, err
	}
	var e telnyxEvent
	if err := json.Unmarshal(keepDamaged(raw), &e); err != nil {
		return nil, fmt.Errorf("read webhook: %w", err)
	}
	p := e.Data.Payload
	p.ID = undamaged(p.ID)
	switch {
	case len(p.To) == 0 || p.ID == "":
		return nil, nil
	case e.Data.Type == "message.received":
		m := &Incoming{ID: p.ID, From: undamaged(p.From.Number), To: p.To[0].Number, Body: p.Text}
		for _, other := range slices.Concat(p.To[1:], p.CC) { // of a group message, in which our number has any place
			m.Others = append(m.Others, undamaged(other.Number))
		}
		for _, f := range p.Media {
			m.Media = append(m.Media, sms.Media{URL: undamaged(f.URL), ContentType: undamaged(f.Type), SizeBytes: f.Size})
		}
		return []Event{{Message: m}}, nil
	case e.Data.Type != "message.finalized":
		return nil, nil
	}
	result := sms.Result{Status: map[string]string{"delivered": sms.Delivered, "delivery_failed": sms.Undelivered,
		"sending_failed": sms.Failed}[p.To[0].Status]}
	if result.Status != "" && result.Status != sms.Delivered {
		code, message := p.Errors.first()
		result.Fault = vendorFault(telnyxCodes, undamaged(code), undamaged(message))
	}
	return []Event{{Receipt: &Receipt{ID: p.ID, Result: result}}}, nil
}

// verify checks the Ed25519 signature of a webhook over its timestamp and body.
func (t *telnyxAdapter) verify(h http.Header, raw []byte) error {
	stamp := h.Get("Telnyx-Timestamp")
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || t.now().Sub(time.Unix(seconds, 0)).Abs() > maxClockSkew {
		return ErrSignature
	}
	signature, err := base64.StdEncoding.DecodeString(h.Get("Telnyx-Signature-Ed25519"))
	if err != nil || !ed25519.Verify(t.key, append([]byte(stamp+"|"), raw...), signature) {
		return ErrSignature
	}
	return nil
}

// Test requests the messaging profile, or the list of profiles.
func (t *telnyxAdapter) Test(ctx context.Context) error {
	address := t.URL + "/messaging_profiles"
	if t.MessagingProfileID != "" {
		address += "/" + url.PathEscape(t.MessagingProfileID)
	}
	r, err := http.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+t.APIKey)
	return testRequest(ctx, t.client, r)
}
