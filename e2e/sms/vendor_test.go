package sms

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
)

// vendorAPI replaces the API of a vendor. It accepts messages and records the addresses for receipts.
type vendorAPI struct {
	*httptest.Server
	mu   sync.Mutex // guards told
	told []string   // addresses for receipts
}

// newVendorAPI starts a stand-in.
func newVendorAPI(t *testing.T) *vendorAPI {
	v := &vendorAPI{}
	v.Server = httptest.NewServer(http.HandlerFunc(v.serve))
	t.Cleanup(v.Close)
	return v
}

// serve answers requests.
func (v *vendorAPI) serve(w http.ResponseWriter, r *http.Request) {
	v.mu.Lock()
	defer v.mu.Unlock()
	raw, _ := io.ReadAll(r.Body)
	if r.Header.Get("Content-Type") == "application/json" {
		var m struct {
			To      string
			Webhook string `json:"webhook_url"`
		}
		_ = json.Unmarshal(raw, &m)
		v.told = append(v.told, m.Webhook)
		fmt.Fprintf(w, `{"data":{"id":%q}}`, m.To)
		return
	}
	form, _ := url.ParseQuery(string(raw))
	v.told = append(v.told, form.Get("StatusCallback"))
	w.WriteHeader(201)
	fmt.Fprintf(w, `{"sid":%q,"status":"queued"}`, form.Get("To"))
}

// receiptURL returns the address for the receipt of the n-th message.
func (v *vendorAPI) receiptURL(t *testing.T, n int) string {
	t.Helper()
	at := ""
	rig.Until(t, "a message at the vendor", 30*time.Second, func() bool {
		v.mu.Lock()
		defer v.mu.Unlock()
		if len(v.told) >= n {
			at = v.told[n-1]
		}
		return at != ""
	})
	return at
}

// vendorOrg is an organisation that is connected with a vendor.
type vendorOrg struct {
	*rig.Client
	t        *testing.T
	callback string
}

// newVendorOrg makes an organisation.
func newVendorOrg(t *testing.T, s *rig.Server, provider string, settings map[string]any) *vendorOrg {
	t.Helper()
	d := &vendorOrg{Client: s.Org("live"), t: t}
	var trunk struct{ ID string }
	d.Want(201, "POST", "/trunks", map[string]any{"name": "Carrier", "host": "sip.carrier.example"}, &trunk)
	d.Want(201, "POST", "/numbers", map[string]any{"number": "+12025550143", "trunk_id": trunk.ID, "sms_enabled": true}, nil)
	var c struct {
		CallbackURL string `json:"callback_url"`
	}
	d.Want(201, "POST", "/sms/carriers", map[string]any{"provider": provider, "name": provider, "settings": settings}, &c)
	d.callback = c.CallbackURL
	return d
}

// send sends a message.
func (d *vendorOrg) send(to string) string {
	d.t.Helper()
	var m struct{ ID string }
	d.Want(201, "POST", "/sms", map[string]any{"from": "+12025550143", "to": to, "body": "Hello"}, &m)
	return m.ID
}

// waitStatus waits until a message is in a state, and returns the code of its error.
func (d *vendorOrg) waitStatus(id, status string) string {
	d.t.Helper()
	var m struct {
		Status string
		Error  *struct{ Code string }
	}
	rig.Until(d.t, "message "+status, 30*time.Second, func() bool {
		d.Want(200, "GET", "/sms/"+id, nil, &m)
		return m.Status == status
	})
	if m.Error == nil {
		return ""
	}
	return m.Error.Code
}

// received returns the messages received.
func (d *vendorOrg) received() (all []string) {
	d.t.Helper()
	var page struct{ Data []struct{ Body string } }
	d.Want(200, "GET", "/sms?direction=inbound", nil, &page)
	for _, m := range page.Data {
		all = append(all, m.Body)
	}
	return all
}

// post sends a vendor's request and returns the status.
func post(t *testing.T, address, kind, body string, header map[string]string) int {
	t.Helper()
	r, err := http.NewRequest("POST", address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", kind)
	for name, v := range header {
		r.Header.Set(name, v)
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	return a.StatusCode
}

func TestTwilio_MessagesAndSignatures(t *testing.T) {
	t.Parallel()
	rig.Either(t, rig.Options{Alone: true, Env: fixture.NoSpeech}, func(t *testing.T, s *rig.Server) {
		v := newVendorAPI(t)
		d := newVendorOrg(t, s, "twilio", map[string]any{"account_sid": "AC1", "auth_token": "token", "url": v.URL})
		signed := func(address string, form url.Values) int {
			c := exec.Command("node", "twilio_sign.js", "token", address, form.Encode())
			c.Dir = filepath.Join(rig.Root(), "e2e", "node")
			signature, err := c.Output()
			if err != nil {
				t.Fatal(err)
			}
			return post(t, address, "application/x-www-form-urlencoded", form.Encode(), map[string]string{"X-Twilio-Signature": string(signature)})
		}
		one, two := d.send(mobile), d.send("+12025550171")
		at := v.receiptURL(t, 2)
		d.waitStatus(one, "sent")
		d.waitStatus(two, "sent")
		for _, form := range []url.Values{{"MessageSid": {mobile}, "MessageStatus": {"sent"}}, {"MessageSid": {mobile}, "MessageStatus": {"delivered"}},
			{"MessageSid": {"+12025550171"}, "MessageStatus": {"undelivered"}, "ErrorCode": {"21610"}}} {
			if status := signed(at, form); status != 204 {
				t.Errorf("%v is answered %d", form, status)
			}
		}
		d.waitStatus(one, "delivered")
		if code := d.waitStatus(two, "undelivered"); code != "opted_out" {
			t.Errorf("error %s", code)
		}
		in := url.Values{"MessageSid": {"SM9"}, "SmsStatus": {"received"}, "From": {mobile}, "To": {"+12025550143"}, "Body": {"Größe & 🚀 = 1+1"}, "NumMedia": {"0"}}
		for range 2 { // the vendor repeats it if the response was late
			if status := signed(d.callback, in); status != 204 {
				t.Errorf("a message is answered %d", status)
			}
		}
		in.Set("Body", "forged")
		if status := post(t, d.callback, "application/x-www-form-urlencoded", in.Encode(), map[string]string{"X-Twilio-Signature": "AAAA"}); status != 403 {
			t.Errorf("a forged message is answered %d", status)
		}
		if all := d.received(); len(all) != 1 || all[0] != "Größe & 🚀 = 1+1" {
			t.Errorf("came %q", all)
		}
	})
}

func TestTelnyx_MessagesAndSignature(t *testing.T) {
	t.Parallel()
	rig.Either(t, rig.Options{Alone: true, Env: fixture.NoSpeech}, func(t *testing.T, s *rig.Server) {
		v := newVendorAPI(t)
		public, private, _ := ed25519.GenerateKey(nil)
		d := newVendorOrg(t, s, "telnyx", map[string]any{"api_key": "KEY", "public_key": base64.StdEncoding.EncodeToString(public), "url": v.URL + "/v2"})
		signed := func(address, body string) int {
			stamp := strconv.FormatInt(time.Now().Unix(), 10)
			return post(t, address, "application/json", body, map[string]string{"Telnyx-Timestamp": stamp,
				"Telnyx-Signature-Ed25519": base64.StdEncoding.EncodeToString(ed25519.Sign(private, []byte(stamp+"|"+body)))})
		}
		event := func(kind, id, from, to, status, more string) string {
			return fmt.Sprintf(`{"data":{"event_type":%q,"payload":{"id":%q,"from":{"phone_number":%q},"to":[{"phone_number":%q,"status":%q}],"text":"Hi 🚀","media":[],"errors":[%s]}}}`,
				kind, id, from, to, status, more)
		}
		one, two := d.send(mobile), d.send("+12025550171")
		at := v.receiptURL(t, 2)
		d.waitStatus(one, "sent")
		d.waitStatus(two, "sent")
		for _, body := range []string{event("message.sent", mobile, "+12025550143", mobile, "sent", ""),
			event("message.finalized", mobile, "+12025550143", mobile, "delivered", ""),
			event("message.finalized", "+12025550171", "+12025550143", "+12025550171", "delivery_failed", `{"code":"40300","title":"Blocked"}`)} {
			if status := signed(at, body); status != 204 {
				t.Errorf("%s is answered %d", body, status)
			}
		}
		d.waitStatus(one, "delivered")
		if code := d.waitStatus(two, "undelivered"); code != "opted_out" {
			t.Errorf("error %s", code)
		}
		in := event("message.received", "in-1", mobile, "+12025550143", "webhook_delivered", "")
		if a, b := signed(d.callback, in), signed(d.callback, in); a != 204 || b != 204 {
			t.Errorf("a message is answered %d, then %d", a, b)
		}
		if status := post(t, d.callback, "application/json", in, nil); status != 403 {
			t.Errorf("a forged message is answered %d", status)
		}
		if all := d.received(); len(all) != 1 || all[0] != "Hi 🚀" {
			t.Errorf("came %q", all)
		}
	})
}
