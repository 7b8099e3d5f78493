package smscarrier

import (
	"context"
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"soniq/internal/messaging/sms"
	"soniq/internal/platform/op"
)

// TwilioSettings are the settings of a Twilio account (API 2010-04-01).
type TwilioSettings struct {
	AccountSID          string `json:"account_sid"`
	AuthToken           string `json:"auth_token"`            // also verifies callbacks
	MessagingServiceSID string `json:"messaging_service_sid"` // may be empty
	URL                 string `json:"url"`                   // of the API, if it is not the default
}

const twilioURL = "https://api.twilio.com"

// twilioCodes maps error codes of Twilio to fault codes.
var twilioCodes = map[string]string{
	"21610": "opted_out",
	"21211": "invalid_destination", "21214": "invalid_destination", "21217": "invalid_destination", "21612": "invalid_destination",
	"21614": "invalid_destination", "21635": "invalid_destination", "30005": "invalid_destination", "30006": "invalid_destination",
	"30003": "unreachable", "30017": "unreachable", "30004": "blocked", "30007": "blocked", "30036": "expired",
	"30001": "rate_limited", "30022": "rate_limited", "30023": "rate_limited", "14107": "rate_limited", "21611": "rate_limited",
}

// twilioAdapter is the adapter for Twilio.
type twilioAdapter struct {
	TwilioSettings
	info   CarrierInfo
	client *http.Client
}

func buildTwilio(s *Service, about CarrierInfo, raw json.RawMessage) (Adapter, []op.Violation) {
	t := &twilioAdapter{info: about, client: s.cfg.Guard.Client(vendorLimits)}
	if wrong := op.DecodeSettings(raw, &t.TwilioSettings); wrong != nil {
		return nil, wrong
	}
	wrong := checkVendorURL(s.cfg.Guard, &t.URL, twilioURL)
	requireText(&wrong, "account_sid", t.AccountSID, false)
	requireText(&wrong, "auth_token", t.AuthToken, false)
	requireText(&wrong, "messaging_service_sid", t.MessagingServiceSID, true)
	return t, wrong
}

// Send posts a message.
func (t *twilioAdapter) Send(ctx context.Context, o sms.Outgoing) (sms.Result, error) {
	form := url.Values{"To": {o.To}, "From": {o.From}, "Body": {o.Body}}
	if t.info.CallbackURL != "" {
		form.Set("StatusCallback", t.info.CallbackURL)
	}
	if t.MessagingServiceSID != "" {
		form.Set("MessagingServiceSid", t.MessagingServiceSID)
	}
	if all := mediaURLs(o.Media); len(all) > 0 {
		form["MediaUrl"] = all
	}
	address := t.URL + "/2010-04-01/Accounts/" + url.PathEscape(t.AccountSID) + "/Messages.json"
	r, err := http.NewRequest(http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		return sms.Result{}, fmt.Errorf("%w: %w", sms.ErrUnsent, err)
	}
	r.SetBasicAuth(t.AccountSID, t.AuthToken)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
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
func (t *twilioAdapter) parseResponse(a vendorResponse) (sms.Result, error) {
	var doc struct {
		SID, Status, Message string
		Code                 int
		ErrorCode            *int `json:"error_code"`
	}
	err := a.decode(&doc)
	if a.status >= 300 {
		return t.parseError(a, doc.Code, doc.Message)
	}
	if err != nil || doc.SID == "" {
		return sms.Result{}, fmt.Errorf("%w: the response has no message id", sms.ErrOutcomeUnknown)
	}
	if doc.Status == "failed" {
		code := ""
		if doc.ErrorCode != nil {
			code = strconv.Itoa(*doc.ErrorCode)
		}
		return refusedResult(vendorFault(twilioCodes, code, "")), nil
	}
	return sms.Result{Status: sms.Sent, IDs: []string{doc.SID}}, nil
}

// parseError returns the result for an error response. Its status member is a number, while that of a message is a
// word; a decoding error of it is therefore ignored.
func (t *twilioAdapter) parseError(a vendorResponse, code int, message string) (sms.Result, error) {
	switch {
	case code == 20003, code == 20005, code == 0 && a.status == http.StatusForbidden:
		return sms.Result{}, a.authError()
	case code == 20429:
		return sms.Result{}, &sms.BusyError{After: retryAfter(a.header), Cause: fmt.Errorf("answered with %d", code)}
	case code == 0:
		code = a.status
	}
	return refusedResult(vendorFault(twilioCodes, strconv.Itoa(code), message)), nil
}

// maxTwilioMedia is the highest number of attachments of a message.
const maxTwilioMedia = 10

// ParseCallback parses a status callback, or a received message.
func (t *twilioAdapter) ParseCallback(r *http.Request, raw []byte) ([]Event, error) {
	form, err := url.ParseQuery(string(raw))
	if err != nil {
		return nil, fmt.Errorf("read callback: %w", err)
	}
	if !t.verifySignature(r.Header.Get("X-Twilio-Signature"), r.URL.RawQuery, form) {
		return nil, ErrSignature
	}
	id := form.Get("MessageSid")
	if id == "" {
		return nil, nil
	}
	if status := form.Get("MessageStatus"); status != "" && status != "received" {
		return []Event{{Receipt: &Receipt{ID: id, Result: twilioResult(status, form.Get("ErrorCode"))}}}, nil
	}
	m := &Incoming{ID: id, From: form.Get("From"), To: form.Get("To"), Body: form.Get("Body")}
	n, _ := strconv.Atoi(form.Get("NumMedia"))
	for i := range min(n, maxTwilioMedia) {
		m.Media = append(m.Media, sms.Media{URL: form.Get(fmt.Sprint("MediaUrl", i)),
			ContentType: form.Get(fmt.Sprint("MediaContentType", i))})
	}
	return []Event{{Message: m}}, nil
}

// twilioResult returns the result for a status. Statuses before delivered, undelivered and failed have no effect.
func twilioResult(status, code string) sms.Result {
	r := sms.Result{Status: map[string]string{"delivered": sms.Delivered, "undelivered": sms.Undelivered, "failed": sms.Failed}[status]}
	if r.Status == sms.Undelivered || r.Status == sms.Failed {
		r.Fault = vendorFault(twilioCodes, code, "")
	}
	return r
}

// verifySignature reports whether a request to our callback URL is signed with the account's token. Twilio signs the
// URL with the port in some products, and without it in others.
func (t *twilioAdapter) verifySignature(signature, query string, form url.Values) bool {
	given, err := base64.StdEncoding.DecodeString(signature)
	if err != nil {
		return false
	}
	for _, address := range withAndWithoutPort(t.info.CallbackURL) {
		if query != "" {
			address += "?" + query
		}
		if hmac.Equal(given, twilioSignature(t.AuthToken, address, form)) {
			return true
		}
	}
	return false
}

// twilioSignature returns the HMAC-SHA1 of the URL and the parameters, sorted by name, each followed by its values.
func twilioSignature(token, address string, form url.Values) []byte {
	m := hmac.New(sha1.New, []byte(token))
	m.Write([]byte(address))
	for _, name := range slices.Sorted(maps.Keys(form)) {
		values := slices.Clone(form[name])
		slices.Sort(values)
		for _, v := range slices.Compact(values) {
			m.Write([]byte(name + v))
		}
	}
	return m.Sum(nil)
}

// withAndWithoutPort returns a URL as it is, and with its default port added or removed.
func withAndWithoutPort(address string) []string {
	u, err := url.Parse(address)
	if err != nil {
		return []string{address}
	}
	usual := map[string]string{"https": "443", "http": "80"}[u.Scheme]
	other := *u
	switch u.Port() {
	case "":
		other.Host += ":" + usual
	case usual:
		other.Host = u.Hostname()
	default:
		return []string{address}
	}
	return []string{address, other.String()}
}

// Test requests the account.
func (t *twilioAdapter) Test(ctx context.Context) error {
	r, err := http.NewRequest(http.MethodGet, t.URL+"/2010-04-01/Accounts/"+url.PathEscape(t.AccountSID)+".json", nil)
	if err != nil {
		return err
	}
	r.SetBasicAuth(t.AccountSID, t.AuthToken)
	return testRequest(ctx, t.client, r)
}
