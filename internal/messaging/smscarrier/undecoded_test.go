package smscarrier_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http/httptest"
	"strings"
	"testing"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
)

// https://github.com/Mnexa-AI/e2a/issues/804
func TestCallback_UndecodableKeptAsOctets(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h, v := newFixture(t, d), newFakeVendor(t)
		settings := map[string]any{"send": map[string]any{"url": v.URL + "/messages?to={{to}}", "json": map[string]any{"text": "{{text}}"}},
			"callback": map[string]any{"header": "X-Signature", "hmac": "sha256", "secret": secret,
				"message": map[string]any{"id": "mid", "from": "from", "to": "to", "text": "text"}}}
		address := h.connect(v, "Vendor", map[string]any{"settings": settings}).Text("callback_url")
		post := func(kind, form string) int {
			mac := hmac.New(sha256.New, []byte(secret))
			mac.Write([]byte(form))
			r := httptest.NewRequest("POST", strings.TrimPrefix(address, "https://voice.example.com"), strings.NewReader(form))
			r.Header.Set("Content-Type", kind)
			r.Header.Set("X-Signature", hex.EncodeToString(mac.Sum(nil)))
			w := httptest.NewRecorder()
			h.mux.ServeHTTP(w, r)
			return w.Code
		}
		for _, form := range []string{"mid=1&from=12025550170&to=12025550143&text=caf%E9", "mid=2&from=12025550170&to=12025550143&text=a%00b",
			"mid=3&from=B%FCro&to=12025550143&text=ok", "mid=4&from=1&to=%FF&text=x"} {
			if status := post("application/x-www-form-urlencoded", form); status != 204 {
				t.Errorf("%s was answered %d", form, status)
			}
		}
		for _, document := range []string{"{\"mid\":\"5\",\"from\":\"12025550171\",\"to\":\"12025550143\",\"text\":\"th\xe9\"}",
			`{"mid":"6","from":"12025550171","to":"12025550143","text":"hi \ud83d"}`,
			"{\"mid\":\"\xff\",\"from\":\"B\xfcro\",\"to\":\"12025550143\",\"text\":\"fine\"}",
			"{\"mid\":\"8\",\"from\":\"1\",\"to\":\"\xff\",\"text\":\"x\"}"} {
			if status := post("application/json", document); status != 204 {
				t.Errorf("%s was answered %d", document, status)
			}
		}
		got := map[string]bool{}
		a := h.request("GET", "/sms?direction=inbound", nil).Want(200)
		for _, i := range []string{"0", "1", "2", "3", "4", "5"} {
			m := "data." + i + "."
			got[strings.Join([]string{a.Text(m + "from_number"), a.Text(m + "body"), a.Text(m + "media.0.url"), a.Text(m + "media.0.content_type")}, " ")] = true
		}
		for _, want := range []string{mobile + "  data:application/octet-stream;base64,Y2Fm6Q== application/octet-stream",
			mobile + "  data:application/octet-stream;base64,YQBi application/octet-stream", "B?ro ok  ",
			"+12025550171  data:application/octet-stream;base64,dGjp application/octet-stream",
			"+12025550171  data:application/octet-stream;base64,aGkgXHVkODNk application/octet-stream", "unknown fine  "} {
			if !got[want] {
				t.Errorf("%q is missing: %s", want, a.Bytes)
			}
		}
		if strings.Contains(string(a.Bytes), "\ufffd") || a.At("data.6") != nil {
			t.Errorf("got %s", a.Bytes)
		}
	})
}
