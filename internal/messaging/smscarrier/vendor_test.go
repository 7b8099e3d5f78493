package smscarrier

import (
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"soniq/internal/identity/org"
	"soniq/internal/messaging/sms"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/db"
	"soniq/internal/platform/egress"
	"soniq/internal/platform/seal"
)

const callbackURL = "https://voice.example.com/carriers/sms/token"

// fakeVendor is an HTTP server that responds as the vendor's documentation describes.
type fakeVendor struct {
	*httptest.Server
	mu          sync.Mutex // guards the fields below
	status      int
	header      http.Header
	body        string
	request     *http.Request
	requestBody string
}

func newFakeVendor(t *testing.T) *fakeVendor {
	x := &fakeVendor{header: http.Header{}}
	x.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		x.mu.Lock()
		defer x.mu.Unlock()
		x.request, x.requestBody = r, string(b)
		if x.status == 0 { // closes the connection without a response
			panic(http.ErrAbortHandler)
		}
		for name, v := range x.header {
			w.Header()[name] = v
		}
		w.WriteHeader(x.status)
		_, _ = io.WriteString(w, x.body)
	}))
	t.Cleanup(x.Close)
	return x
}

func (x *fakeVendor) respond(status int, body string, header ...string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.status, x.body, x.header = status, body, http.Header{}
	for i := 0; i+1 < len(header); i += 2 {
		x.header.Set(header[i], header[i+1])
	}
}

func newAdapter(t *testing.T, provider string, settings map[string]any) Adapter {
	t.Helper()
	s := New(Config{DB: &db.DB{}, Bus: bus.New(), Orgs: &org.Service{}, Seal: &seal.Seal{}, Messages: &sms.Service{},
		Log: slog.New(slog.DiscardHandler), Guard: egress.New([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}), Numbers: noNumbers{}})
	p, ok := providerOf(provider)
	if !ok || !p.hasCallback {
		t.Fatalf("%s cannot be connected", provider)
	}
	raw, _ := json.Marshal(settings)
	a, wrong := p.build(s, CarrierInfo{Org: "org_a", ID: "smc_1", CallbackURL: callbackURL}, raw)
	if wrong != nil {
		t.Fatal(wrong)
	}
	return a
}

var outgoing = sms.Outgoing{Org: "org_a", Reference: "sms_1", From: "+12025550143", To: "+12025550111", Body: "Price: 5 € 🚀",
	Media: []sms.Media{{URL: "https://files.example.com/a.png"}, {URL: "https://files.example.com/b.png"}}}

// checkOutcomes checks the results of an adapter for responses, because they determine whether a message is sent
// again.
func checkOutcomes(t *testing.T, x *fakeVendor, a Adapter, accepted, optedOut, forbidden string, forbiddenStatus int) {
	t.Helper()
	x.respond(200, "{}")
	if err := a.(Tester).Test(context.Background()); err != nil || x.request.Method != "GET" {
		t.Errorf("tested: %v, %s %s", err, x.request.Method, x.request.URL)
	}
	x.respond(401, "{}")
	if err := a.(Tester).Test(context.Background()); !errors.Is(err, ErrAuth) {
		t.Errorf("tested with wrong credentials: %v", err)
	}
	x.respond(200, accepted)
	if r, err := a.Send(context.Background(), outgoing); err != nil || r.Status != sms.Sent || len(r.IDs) != 1 || r.IDs[0] != "id-1" {
		t.Errorf("accepted: %+v, %v", r, err)
	}
	x.respond(400, optedOut)
	if r, err := a.Send(context.Background(), outgoing); err != nil || r.Status != sms.Failed || r.Fault.Code != "opted_out" ||
		r.Fault.CarrierCode == nil {
		t.Errorf("opted out: %+v, %v", r, err)
	}
	x.respond(422, "{}")
	if r, err := a.Send(context.Background(), outgoing); err != nil || r.Status != sms.Failed || r.Fault.Code != "carrier_rejected" ||
		*r.Fault.CarrierCode != "422" {
		t.Errorf("refused without a reason: %+v, %v", r, err)
	}
	for _, c := range []struct {
		status int
		body   string
		is     error
		not    error
	}{
		{401, "{}", ErrAuth, sms.ErrOutcomeUnknown}, {forbiddenStatus, forbidden, ErrAuth, sms.ErrOutcomeUnknown}, {503, "", sms.ErrUnsent, sms.ErrOutcomeUnknown},
		{500, "", sms.ErrOutcomeUnknown, sms.ErrUnsent}, {502, "", sms.ErrOutcomeUnknown, sms.ErrUnsent}, {200, "nonsense", sms.ErrOutcomeUnknown, sms.ErrUnsent},
		{200, "{}", sms.ErrOutcomeUnknown, sms.ErrUnsent}, {0, "", sms.ErrOutcomeUnknown, sms.ErrUnsent},
	} {
		x.respond(c.status, c.body)
		if _, err := a.Send(context.Background(), outgoing); !errors.Is(err, c.is) || errors.Is(err, c.not) {
			t.Errorf("%d %s: %v", c.status, c.body, err)
		}
	}
	x.respond(429, "{}", "Retry-After", "17")
	var busy *sms.BusyError
	if _, err := a.Send(context.Background(), outgoing); !errors.As(err, &busy) || busy.After != 17*time.Second {
		t.Errorf("too fast: %v", err)
	}
	x.Close()
	_, _ = a.Send(context.Background(), outgoing) // detects that the kept connection is closed: the request may have been received
	if _, err := a.Send(context.Background(), outgoing); !errors.Is(err, sms.ErrUnsent) {
		t.Errorf("nobody there: %v", err)
	}
}

func TestTelnyx_Send(t *testing.T) {
	t.Parallel()
	x := newFakeVendor(t)
	key, _, _ := ed25519.GenerateKey(nil)
	a := newAdapter(t, "telnyx", map[string]any{"api_key": "KEY1", "public_key": base64.StdEncoding.EncodeToString(key), "messaging_profile_id": "prof", "url": x.URL + "/v2"})
	x.respond(200, `{"data":{"id":"id-1","record_type":"message","to":[{"phone_number":"+12025550111","status":"queued"}]}}`)
	if _, err := a.Send(t.Context(), outgoing); err != nil {
		t.Fatal(err)
	}
	if x.request.Method != "POST" || x.request.URL.Path != "/v2/messages" || x.request.Header.Get("Authorization") != "Bearer KEY1" {
		t.Errorf("asked %s %s with %q", x.request.Method, x.request.URL, x.request.Header)
	}
	var got map[string]any
	_ = json.Unmarshal([]byte(x.requestBody), &got)
	want := map[string]any{"from": "+12025550143", "to": "+12025550111", "text": "Price: 5 € 🚀", "messaging_profile_id": "prof", "webhook_url": callbackURL,
		"use_profile_webhooks": false, "media_urls": []any{"https://files.example.com/a.png", "https://files.example.com/b.png"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("sent %s", x.requestBody)
	}
	checkOutcomes(t, x, a, `{"data":{"id":"id-1"}}`, `{"errors":[{"code":"40300","title":"Blocked due to STOP message","detail":"no"}]}`,
		`{"errors":[{"code":"10010","title":"Authorization failed"}]}`, 403)
}

func TestTwilio_Send(t *testing.T) {
	t.Parallel()
	x := newFakeVendor(t)
	a := newAdapter(t, "twilio", map[string]any{"account_sid": "AC1", "auth_token": "secret", "messaging_service_sid": "MG1", "url": x.URL})
	x.respond(201, `{"sid":"id-1","status":"queued","error_code":null}`)
	if _, err := a.Send(t.Context(), outgoing); err != nil {
		t.Fatal(err)
	}
	user, password, _ := x.request.BasicAuth()
	if x.request.Method != "POST" || x.request.URL.Path != "/2010-04-01/Accounts/AC1/Messages.json" || user != "AC1" || password != "secret" {
		t.Errorf("asked %s %s as %s", x.request.Method, x.request.URL, user)
	}
	got, _ := url.ParseQuery(x.requestBody)
	want := url.Values{"From": {"+12025550143"}, "To": {"+12025550111"}, "Body": {"Price: 5 € 🚀"}, "MessagingServiceSid": {"MG1"}, "StatusCallback": {callbackURL},
		"MediaUrl": {"https://files.example.com/a.png", "https://files.example.com/b.png"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("sent %s", x.requestBody)
	}
	checkOutcomes(t, x, a, `{"sid":"id-1","status":"accepted"}`, `{"code":21610,"message":"Attempt to send to unsubscribed recipient","status":400}`,
		`{"code":20003,"message":"Authenticate","status":403}`, 403)
}

// postCallback passes a callback to an adapter.
func postCallback(a Adapter, body string, header ...string) ([]Event, error) {
	r := httptest.NewRequest("POST", "/carriers/sms/token", strings.NewReader(body))
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return a.(CallbackReceiver).ParseCallback(r, []byte(body))
}

func TestTelnyxCallback_SignatureRequired(t *testing.T) {
	t.Parallel()
	public, private, _ := ed25519.GenerateKey(nil)
	a := newAdapter(t, "telnyx", map[string]any{"api_key": "KEY1", "public_key": base64.StdEncoding.EncodeToString(public)})
	signed := func(body string, at time.Time) ([]Event, error) {
		stamp := strconv.FormatInt(at.Unix(), 10)
		return postCallback(a, body, "telnyx-timestamp", stamp, "telnyx-signature-ed25519",
			base64.StdEncoding.EncodeToString(ed25519.Sign(private, []byte(stamp+"|"+body))))
	}
	now := time.Now()
	event := func(kind, to, more string) string {
		return `{"data":{"event_type":"` + kind + `","id":"e","payload":{"id":"id-1","from":{"phone_number":"+12025550111"},"to":[{"phone_number":"+12025550143","status":"` +
			to + `"}],"text":"hi","media":[{"url":"https://m.example.com/1","content_type":"image/png","size":7}],"errors":[` + more + `]}},"meta":{}}`
	}
	all, err := signed(event("message.received", "webhook_delivered", ""), now)
	if want := (&Incoming{ID: "id-1", From: "+12025550111", To: "+12025550143", Body: "hi",
		Media: []sms.Media{{URL: "https://m.example.com/1", ContentType: "image/png", SizeBytes: 7}}}); err != nil || len(all) != 1 ||
		!reflect.DeepEqual(all[0].Message, want) {
		t.Errorf("received: %+v, %v", all, err)
	}
	for status, want := range map[string]string{"delivered": sms.Delivered, "delivery_failed": sms.Undelivered, "sending_failed": sms.Failed, "delivery_unconfirmed": ""} {
		all, err := signed(event("message.finalized", status, `{"code":"40300","title":"Blocked"}`), now)
		if err != nil || all[0].Receipt.ID != "id-1" || all[0].Receipt.Result.Status != want {
			t.Errorf("%s: %+v, %v", status, all, err)
		}
		if f := all[0].Receipt.Result.Fault; (want == sms.Undelivered || want == sms.Failed) && (f == nil || f.Code != "opted_out") {
			t.Errorf("%s: %+v", status, f)
		}
	}
	if all, err := signed(event("message.sent", "sent", ""), now); err != nil || len(all) != 0 {
		t.Errorf("sent: %+v, %v", all, err)
	}
	damaged := strings.Replace(event("message.received", "x", ""), `"text":"hi"`, "\"text\":\"caf\xe9\"", 1)
	all, err = signed(damaged, now)
	if err != nil || len(all) != 1 {
		t.Fatalf("damaged: %+v, %v", all, err)
	}
	if octets, ok := damagedOctets(all[0].Message.Body); !ok || string(octets) != "caf\xe9" || all[0].Message.ID != "id-1" {
		t.Errorf("damaged: %+v", all[0].Message)
	}
	body := event("message.received", "x", "")
	for _, at := range []time.Time{now.Add(-6 * time.Minute), now.Add(6 * time.Minute)} {
		if _, err := signed(body, at); !errors.Is(err, ErrSignature) {
			t.Errorf("of %s: %v", at, err)
		}
	}
	stamp := strconv.FormatInt(now.Unix(), 10)
	good := base64.StdEncoding.EncodeToString(ed25519.Sign(private, []byte(stamp+"|"+body)))
	for _, header := range [][]string{nil, {"telnyx-timestamp", stamp}, {"telnyx-timestamp", stamp, "telnyx-signature-ed25519", "!"},
		{"telnyx-timestamp", strconv.FormatInt(now.Unix()-1, 10), "telnyx-signature-ed25519", good}} {
		if _, err := postCallback(a, body, header...); !errors.Is(err, ErrSignature) {
			t.Errorf("with %q: %v", header, err)
		}
	}
	if _, err := postCallback(a, body+" ", "telnyx-timestamp", stamp, "telnyx-signature-ed25519", good); !errors.Is(err, ErrSignature) {
		t.Errorf("another body: %v", err)
	}
}

func TestTwilioCallback_SignatureRequired(t *testing.T) {
	t.Parallel()
	a := newAdapter(t, "twilio", map[string]any{"account_sid": "AC1", "auth_token": "secret"})
	signed := func(form url.Values, address string) ([]Event, error) {
		return postCallback(a, form.Encode(), "X-Twilio-Signature", base64.StdEncoding.EncodeToString(twilioSignature("secret", address, form)))
	}
	incoming := url.Values{"MessageSid": {"id-1"}, "SmsStatus": {"received"}, "From": {"+12025550111"}, "To": {"+12025550143"}, "Body": {"hi 🚀 & more"}, "NumMedia": {"2"},
		"MediaUrl0": {"https://m.example.com/0"}, "MediaContentType0": {"image/png"}, "MediaUrl1": {"https://m.example.com/1"}, "MediaContentType1": {"text/vcard"}}
	want := &Incoming{ID: "id-1", From: "+12025550111", To: "+12025550143", Body: "hi 🚀 & more",
		Media: []sms.Media{{URL: "https://m.example.com/0", ContentType: "image/png"}, {URL: "https://m.example.com/1", ContentType: "text/vcard"}}}
	for _, address := range []string{callbackURL, strings.Replace(callbackURL, ".com/", ".com:443/", 1)} {
		if all, err := signed(incoming, address); err != nil || len(all) != 1 || !reflect.DeepEqual(all[0].Message, want) {
			t.Errorf("received, signed for %s: %+v, %v", address, all, err)
		}
	}
	for status, want := range map[string]string{"queued": "", "sending": "", "sent": "", "delivered": sms.Delivered, "undelivered": sms.Undelivered, "failed": sms.Failed} {
		all, err := signed(url.Values{"MessageSid": {"id-1"}, "MessageStatus": {status}, "ErrorCode": {"30003"}}, callbackURL)
		if err != nil || len(all) != 1 || all[0].Receipt.ID != "id-1" || all[0].Receipt.Result.Status != want {
			t.Errorf("%s: %+v, %v", status, all, err)
			continue
		}
		if f := all[0].Receipt.Result.Fault; (f != nil) != (want == sms.Undelivered || want == sms.Failed) ||
			f != nil && f.Code != "unreachable" {
			t.Errorf("%s: %+v", status, f)
		}
	}
	if _, err := signed(incoming, "https://voice.example.com/carriers/sms/other"); !errors.Is(err, ErrSignature) {
		t.Errorf("signed for another address: %v", err)
	}
	if _, err := postCallback(a, incoming.Encode()); !errors.Is(err, ErrSignature) {
		t.Errorf("unsigned: %v", err)
	}
}

// TestTwilioCallback_BlankAndFurtherFields proves that fields without a value and those of a messaging service are signed too.
//
// https://github.com/NousResearch/hermes-agent/pull/7933
// https://github.com/chatwoot/chatwoot/pull/14125
func TestTwilioCallback_BlankAndFurtherFields(t *testing.T) {
	t.Parallel()
	a := newAdapter(t, "twilio", map[string]any{"account_sid": "AC1", "auth_token": "secret"})
	form := url.Values{"MessageSid": {"id-1"}, "SmsStatus": {"received"}, "From": {"+12025550111"}, "To": {"+12025550143"}, "Body": {""},
		"FromCity": {""}, "FromZip": {""}, "MessagingServiceSid": {"MG1"}, "NumMedia": {"0"}}
	m := hmac.New(sha1.New, []byte("secret"))
	m.Write([]byte(callbackURL + "Body" + "From+12025550111" + "FromCity" + "FromZip" + "MessageSidid-1" + "MessagingServiceSidMG1" + "NumMedia0" +
		"SmsStatusreceived" + "To+12025550143"))
	all, err := postCallback(a, form.Encode(), "X-Twilio-Signature", base64.StdEncoding.EncodeToString(m.Sum(nil)))
	if err != nil || len(all) != 1 || all[0].Message == nil || all[0].Message.From != "+12025550111" {
		t.Errorf("got %+v, %v", all, err)
	}
}

// Our signature equals the example that Twilio publishes.
func TestTwilioSignature_PublishedExample(t *testing.T) {
	t.Parallel()
	form := url.Values{"CallSid": {"CA1234567890ABCDE"}, "Caller": {"+14158675309"}, "Digits": {"1234"}, "From": {"+14158675309"}, "To": {"+18005551212"}}
	got := base64.StdEncoding.EncodeToString(twilioSignature("12345", "https://mycompany.com/myapp.php?foo=1&bar=2", form))
	if got != "RSOYDt4T1cUTdK1PDd93/VVr8B8=" {
		t.Errorf("signed %s", got)
	}
}

func TestVendorSettings_InvalidRefused(t *testing.T) {
	t.Parallel()
	s := New(Config{Bus: bus.New(), Guard: egress.New(nil), Numbers: noNumbers{}})
	for provider, settings := range map[string]string{
		"telnyx": `{"api_key":"a b","public_key":"AAAA","url":"http://10.0.0.1/v2"}`,
		"twilio": `{"account_sid":"","auth_token":"a b","url":"http://10.0.0.1"}`,
	} {
		p, _ := providerOf(provider)
		if _, wrong := p.build(s, CarrierInfo{}, json.RawMessage(settings)); len(wrong) != 3 {
			t.Errorf("%s: %+v", provider, wrong)
		}
	}
}

// noNumbers stands for an organisation without numbers.
type noNumbers struct{}

func (noNumbers) OwnNumber(context.Context, db.Querier, string, string) (n sms.OwnNumber, ok bool, err error) {
	return n, false, nil
}

func (noNumbers) ParseNumber(context.Context, string, string) (string, bool, error) {
	return "", false, nil
}
