package sipmsg

import (
	"io"
	"mime"
	"mime/multipart"
	"strings"
	"testing"
)

func TestLocation_OfferAndPIDFLOInOneBody(t *testing.T) {
	t.Parallel()
	content, body, fields := WithLocation([]byte("v=0\r\n"), []byte("<presence/>"), "X-A: b\r\n")
	if !strings.HasPrefix(fields, "X-A: b\r\n") || !strings.Contains(fields, "Geolocation: <cid:"+locationID+">\r\n") {
		t.Errorf("fields %q", fields)
	}
	kind, params, err := mime.ParseMediaType(content)
	if err != nil || kind != "multipart/mixed" {
		t.Fatalf("%s: %v", content, err)
	}
	r := multipart.NewReader(strings.NewReader(string(body)), params["boundary"])
	for _, want := range []string{"application/sdp v=0\r\n ", "application/pidf+xml <presence/> <" + locationID + ">"} {
		part, err := r.NextPart()
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(part)
		if got := part.Header.Get("Content-Type") + " " + string(text) + " " + part.Header.Get("Content-ID"); got != want {
			t.Errorf("part %q, want %q", got, want)
		}
	}
	if _, err := r.NextPart(); err != io.EOF {
		t.Errorf("after both parts: %v", err)
	}
}
