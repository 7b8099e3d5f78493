package op

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"soniq/internal/platform/limit"
)

// file is the content of a download, and counts how often it was closed.
type file struct {
	io.ReadSeeker
	closed *int
}

func (f file) Close() error { *f.closed++; return nil }

// TestFileStream_Ranges proves that recordings and other files are sent in the ranges that players ask for. Content-Range and
// Content-Length state exactly these bytes, both ends included.
// https://github.com/UAlbertaALTLab/morphodict/issues/367
// https://github.com/sergix44/xbackbone/issues/667
// https://github.com/mbsantiago/whombat/pull/56
// https://github.com/getgrav/grav/issues/3990
func TestFileStream_Ranges(t *testing.T) {
	t.Parallel()
	const whole = "RIFF and the samples"
	closed := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := FileStream(r.Context(), File{Org: "org_1", Name: "a.wav", Type: "audio/wav",
			Content: file{strings.NewReader(whole), &closed}})
		if err != nil {
			t.Error(err)
			return
		}
		body.Body(humago.NewContext(&huma.Operation{}, r, w))
	}))
	defer server.Close()
	requests := 0
	for asked, c := range map[string]struct {
		status int
		stated string // Content-Range
		bytes  string
	}{
		"":              {200, "", whole},
		"bytes=0-1":     {206, "bytes 0-1/20", "RI"}, // the first request of Safari
		"bytes=0-":      {206, "bytes 0-19/20", whole},
		"bytes=0-0":     {206, "bytes 0-0/20", "R"},
		"bytes=5-7":     {206, "bytes 5-7/20", "and"},
		"bytes=12-":     {206, "bytes 12-19/20", " samples"},
		"bytes=13-9999": {206, "bytes 13-19/20", "samples"},
		"bytes=-7":      {206, "bytes 13-19/20", "samples"},
		"bytes=19-19":   {206, "bytes 19-19/20", "s"},
		"bytes=20-":     {416, "bytes */20", ""},
		"lines=1-2":     {200, "", whole},
	} {
		for _, method := range []string{"GET", "HEAD"} {
			r, _ := http.NewRequestWithContext(t.Context(), method, server.URL, nil)
			if asked != "" {
				r.Header.Set("Range", asked)
			}
			got, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			requests++
			b, err := io.ReadAll(got.Body)
			got.Body.Close()
			if got.StatusCode != c.status || got.Header.Get("Content-Range") != c.stated || err != nil {
				t.Errorf("%s %s: %d, Content-Range %q, %v", method, asked, got.StatusCode, got.Header.Get("Content-Range"), err)
			}
			if c.status == 416 {
				continue
			}
			accepts := got.Header.Get("Accept-Ranges")
			if got.ContentLength != int64(len(c.bytes)) || accepts != "bytes" || method == "GET" && string(b) != c.bytes {
				t.Errorf("%s %s: %q, Content-Length %d, Accept-Ranges %q", method, asked, b, got.ContentLength, accepts)
			}
		}
	}
	if server.Close(); closed != requests {
		t.Errorf("%d of %d files were closed", closed, requests)
	}
}

// A client that has the file already receives 304: by its date, or for any version, because there is one only.
func TestFileStream_NotModified(t *testing.T) {
	t.Parallel()
	closed, changed := 0, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := FileStream(r.Context(), File{Org: "org_1", Name: "a.wav", Type: "audio/wav", Changed: changed,
			Content: file{strings.NewReader("RIFF"), &closed}})
		if err != nil {
			t.Error(err)
			return
		}
		body.Body(humago.NewContext(&huma.Operation{}, r, w))
	}))
	defer server.Close()
	for asked, want := range map[[2]string]int{
		{"If-None-Match", "*"}:                                                     304,
		{"If-None-Match", `"x"`}:                                                   200,
		{"If-Modified-Since", changed.Format(http.TimeFormat)}:                     304,
		{"If-Modified-Since", changed.Add(-time.Second).Format(http.TimeFormat)}:   200,
		{"If-Match", `"x"`}:                                                        200,
		{"If-Unmodified-Since", changed.Add(-time.Second).Format(http.TimeFormat)}: 200,
	} {
		r, _ := http.NewRequestWithContext(t.Context(), "GET", server.URL, nil)
		r.Header.Set(asked[0], asked[1])
		got, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(got.Body)
		got.Body.Close()
		if got.StatusCode != want || (want == 304) != (len(b) == 0) {
			t.Errorf("%v: %d, %q; want %d", asked, got.StatusCode, b, want)
		}
	}
}

// A refused download closes its file. Downloads of other organisations go on.
func TestFileStream_AtOnce(t *testing.T) {
	t.Parallel()
	var c Pipeline
	closed := 0
	open := func(org, address string) error {
		ctx, cancel := context.WithCancel(WithClientAddress(withTransfers(context.Background(), &c.transfers),
			netip.MustParseAddr(address)))
		cancel() // nobody waits for a place
		_, err := FileStream(ctx, File{Org: org, Content: file{strings.NewReader("x"), &closed}})
		return err
	}
	for i := range limit.DownloadsOfOrganisation.Int() {
		if err := open("org_1", []string{"192.0.2.1", "192.0.2.2"}[i%2]); err != nil {
			t.Fatalf("download %d: %v", i, err)
		}
	}
	if err := open("org_1", "192.0.2.3"); err == nil || closed != 1 {
		t.Errorf("one more of the organisation: %v, %d files closed", err, closed)
	}
	if err := open("org_2", "192.0.2.2"); err == nil || closed != 2 {
		t.Errorf("one more of the address: %v, %d files closed", err, closed)
	}
	if err := open("org_2", "192.0.2.3"); err != nil {
		t.Errorf("another organisation: %v", err)
	}
}
