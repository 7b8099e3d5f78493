package api_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"soniq/e2e/rig"
)

// audio fetches a recording whole, in ranges, one channel of it, and by signed address.
func audio(t *testing.T, s *stage) {
	var rec struct {
		ID, Status, SHA256, URL string
		SizeBytes               int `json:"size_bytes"`
	}
	s.a.want(t, 200, "GET", "/calls/"+s.call+"/recording", nil, &rec)
	path := "/recordings/" + rec.ID + "/audio"
	whole := s.a.want(t, 200, "GET", path, nil, nil)
	sum := sha256.Sum256(whole.Body)
	if len(whole.Body) != rec.SizeBytes || hex.EncodeToString(sum[:]) != rec.SHA256 || whole.Header.Get("Content-Type") != "audio/wav" {
		t.Fatalf("%d bytes of %s, the record says %d and sha256 %s", len(whole.Body), whole.Header.Get("Content-Type"), rec.SizeBytes, rec.SHA256)
	}
	if !bytes.HasPrefix(whole.Body, []byte("RIFF")) || whole.Header.Get("Accept-Ranges") != "bytes" {
		t.Errorf("not a WAV file, or no ranges: %q", whole.Header)
	}
	ranges(t, s, path, whole.Body)
	sides(t, s, path, len(whole.Body))
	signed(t, s, rec.URL, path, whole)
	r := s.a.call(t, "GET", "/calls/"+s.call+"/recording?format=audio", nil)
	if to := r.Header.Get("Location"); r.Status != 302 || !strings.Contains(to, path) {
		t.Errorf("format=audio: %d to %q", r.Status, to)
	}
}

func ranges(t *testing.T, s *stage, path string, whole []byte) {
	n := len(whole)
	for header, want := range map[string][]byte{
		"bytes=0-99": whole[:100], "bytes=100-199": whole[100:200], fmt.Sprintf("bytes=%d-", n-10): whole[n-10:], "bytes=-7": whole[n-7:],
		fmt.Sprintf("bytes=50-%d", n+1000): whole[50:], "bytes=0-0": whole[:1],
	} {
		r := s.a.call(t, "GET", path, nil, "Range", header)
		if r.Status != 206 || !bytes.Equal(r.Body, want) {
			t.Errorf("%s: %d with %d bytes, want 206 with %d", header, r.Status, len(r.Body), len(want))
		}
		if c := r.Header.Get("Content-Range"); !strings.HasSuffix(c, fmt.Sprint("/", n)) {
			t.Errorf("%s: Content-Range %q", header, c)
		}
	}
	beyond := s.a.call(t, "GET", path, nil, "Range", fmt.Sprintf("bytes=%d-", n+1))
	if beyond.Status != 416 || beyond.Header.Get("Content-Range") != fmt.Sprint("bytes */", n) {
		t.Errorf("a range beyond the end: %d, Content-Range %q", beyond.Status, beyond.Header.Get("Content-Range"))
	}
	if r := s.a.call(t, "GET", path, nil, "Range", "lines=1-2"); r.Status != 200 || len(r.Body) != n {
		t.Errorf("a range in unknown units: %d with %d bytes, want all %d", r.Status, len(r.Body), n)
	}
}

func sides(t *testing.T, s *stage, path string, n int) {
	for _, side := range []string{"caller", "agent"} {
		r := s.a.want(t, 200, "GET", path+"?channel="+side, nil, nil)
		if !bytes.HasPrefix(r.Body, []byte("RIFF")) || len(r.Body) > n/2+64 || len(r.Body) < n/2-64 {
			t.Errorf("the %s's side has %d bytes of %d", side, len(r.Body), n)
		}
	}
	s.a.refused(t, 400, "invalid_query", "GET", path+"?channel=both", nil)
}

// signed fetches a recording by the address that needs no credential, and by altered addresses.
func signed(t *testing.T, s *stage, address, path string, whole rig.Response) {
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	if r := get(t, s.Server, u.RequestURI()); r.Status != 200 || !bytes.Equal(r.Body, whole.Body) {
		t.Errorf("signed address: %d", r.Status)
	}
	q := u.Query()
	for name, value := range map[string]string{"org": s.b.Org, "expires": "99999999999", "signature": "AAAA"} {
		changed := url.Values{}
		for k, v := range q {
			changed[k] = v
		}
		changed.Set(name, value)
		if r := get(t, s.Server, u.Path+"?"+changed.Encode()); r.Status != 401 {
			t.Errorf("with another %s: %d", name, r.Status)
		}
	}
	if r := get(t, s.Server, u.RequestURI()+"&channel=caller"); r.Status != 401 {
		t.Errorf("with a channel that the signature does not cover: %d", r.Status)
	}
	other := strings.Replace(u.RequestURI(), path, "/recordings/rec_00000000000000000000000000/audio", 1)
	if r := get(t, s.Server, other); r.Status != 401 {
		t.Errorf("another recording with this signature: %d", r.Status)
	}
}
