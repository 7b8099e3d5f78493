package attack

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
	"soniq/internal/platform/limit"
	"soniq/internal/protocol/media/wav"
)

// memoryOf returns the memory of the server in bytes.
func memoryOf(t testing.TB, s *rig.Server) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.PID()))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	kB, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kB << 10
}

// growth returns the largest growth of the server's memory while f runs.
func growth(t testing.TB, s *rig.Server, f func()) int64 {
	t.Helper()
	before, most := memoryOf(t, s), int64(0)
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	for tick := time.NewTicker(10 * time.Millisecond); ; {
		select {
		case <-done:
			tick.Stop()
			return max(most, memoryOf(t, s)-before)
		case <-tick.C:
			most = max(most, memoryOf(t, s)-before)
		}
	}
}

// A flow's expression that would double a text thirty times is refused, and the server goes on.
func TestMemory_ExpressionOfAFlow(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{})
	o := s.Org("live")
	text := `let a=\"xxxxxxxxxx\";`
	for i := range 25 {
		text += fmt.Sprintf("let %c=%c+%c;", 'b'+i, 'a'+i, 'a'+i)
	}
	body := `{"name":"doublings","entry":"a","nodes":[{"id":"a","type":"condition","config":{"expression":"` + text + `len(z)>1"},"next":{"true":"b","false":"c"}},` +
		`{"id":"b","type":"hangup","config":{}},{"id":"c","type":"hangup","config":{}}]}`
	r := o.Do("POST", "/flows", []byte(body))
	if r.Status != http.StatusCreated {
		t.Fatalf("%d %s", r.Status, r.Body)
	}
	id, _ := r.JSON()["id"].(string)
	grown := growth(t, s, func() {
		for range 5 {
			r = o.Do("POST", "/flows/"+id+"/simulate", []byte(`{"from":"anonymous"}`))
		}
	})
	if r.Status != http.StatusOK || !strings.Contains(string(r.Body), `"outcome":"hangup"`) || !strings.Contains(string(r.Body), `"output":"false"`) {
		t.Errorf("%d %s", r.Status, r.Body)
	}
	if grown > 100<<20 {
		t.Errorf("five simulations took %d MB", grown>>20)
	}
}

// upload sends a sound.
func upload(o *rig.Client, file []byte) rig.Response {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	part, _ := w.CreateFormFile("file", "a.mp3")
	_, _ = part.Write(file)
	_ = w.Close()
	return o.Do("POST", "/audio", b.Bytes(), "Content-Type", w.FormDataContentType())
}

// A sound that plays too long is refused with little memory, and one of usual length is taken.
func TestMemory_LongAudio(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{})
	o := s.Org("live")
	const most = 8000 * 60 * 30 // samples of half an hour
	h := wav.Header(wav.ULaw, 1, 8000, most+8000)
	short := wav.Header(wav.ULaw, 1, 8000, 80_000)
	if r := upload(o, append(short[:], make([]byte, 80_000)...)); r.Status != http.StatusCreated {
		t.Errorf("ten seconds: %d %s", r.Status, r.Body)
	}
	grown := growth(t, s, func() {
		r := upload(o, append(h[:], make([]byte, most+8000)...))
		if r.Status != http.StatusUnprocessableEntity || !strings.Contains(string(r.Body), "too_long") {
			t.Errorf("half an hour and a second: %d %s", r.Status, r.Body)
		}
	})
	if grown > 400<<20 { // of the race detector's memory, which is several times that of the server
		t.Errorf("an upload of 14 MB took %d MB", grown>>20)
	}
}

// longRecording makes the recording of a call an hour long, and returns it. Its file has holes, and takes no room on the disk.
func longRecording(t *testing.T, s *rig.Server) (*fixture.Office, fixture.Recording) {
	t.Helper()
	o := fixture.NewOffice(s)
	id := strings.TrimPrefix(o.ConnectCall(), "/calls/")
	o.AdaPhone.Do("hangup", "")
	rec := o.Recording(id)
	var path string
	err := filepath.WalkDir(s.Data, func(file string, e fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(file, id+".wav") {
			path = file
		}
		return err
	})
	if err != nil || path == "" {
		t.Fatalf("the file of %s: %v", id, err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const size = 3600 * 16000
	h := wav.Header(wav.ULaw, 2, 8000, size)
	if _, err := f.WriteAt(h[:], 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(size + wav.HeaderLen); err != nil {
		t.Fatal(err)
	}
	return o, rec
}

// A channel of a long recording is sent with little memory. The signed address of the recording does not fetch a channel.
func TestMemory_ChannelOfARecording(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: fixture.NoSpeech})
	o, rec := longRecording(t, s)
	fetch := func(address string) int {
		r, err := http.NewRequest("GET", address, nil)
		if err != nil {
			t.Error(err)
			return 0
		}
		r.Header.Set("Range", "bytes=1000000-1000010")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Error(err)
			return 0
		}
		defer answer.Body.Close()
		_, _ = io.Copy(io.Discard, answer.Body)
		return answer.StatusCode
	}
	if status := fetch(rec.URL); status != http.StatusPartialContent {
		t.Errorf("the signed address: %d", status)
	}
	if status := fetch(rec.URL + "&channel=caller"); status != http.StatusUnauthorized {
		t.Errorf("a channel of the signed address: %d", status)
	}
	var all sync.WaitGroup
	grown := growth(t, s, func() {
		for range 20 {
			all.Go(func() {
				r := o.Do("GET", "/recordings/"+rec.ID+"/audio?channel=agent", nil, "Range", "bytes=1000000-1000010")
				if r.Status != http.StatusPartialContent || len(r.Body) != 11 {
					t.Errorf("%d with %d bytes", r.Status, len(r.Body))
				}
			})
		}
		all.Wait()
	})
	if grown > 50<<20 {
		t.Errorf("20 requests for 11 bytes took %d MB", grown>>20)
	}
}

// Downloads at once are limited for an address and an organisation. A client that reads nothing has its places only as long as it is
// connected.
func TestMemory_DownloadsAtOnce(t *testing.T) {
	t.Parallel()
	s := rig.Start(t, rig.Options{Env: fixture.NoSpeech})
	o, rec := longRecording(t, s)
	open := func() *http.Response {
		r, err := http.DefaultClient.Get(rec.URL)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	var held []*http.Response
	for range limit.DownloadsOfAddress.Int() {
		r := open()
		if held = append(held, r); r.StatusCode != http.StatusOK {
			t.Fatalf("download %d: %d", len(held), r.StatusCode)
		}
	}
	r := open()
	if r.StatusCode != http.StatusTooManyRequests || r.Header.Get("Retry-After") == "" {
		t.Errorf("one more download: %d", r.StatusCode)
	}
	_ = r.Body.Close()
	for _, r := range held {
		_ = r.Body.Close()
	}
	if r := o.Do("GET", "/recordings/"+rec.ID+"/audio", nil, "Range", "bytes=0-3"); r.Status != http.StatusPartialContent {
		t.Errorf("after the others: %d %s", r.Status, r.Body)
	}
}
