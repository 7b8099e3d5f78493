package prompt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"mime/multipart"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"soniq/internal/identity/org"
	"soniq/internal/platform/blob"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/op"
	"soniq/internal/platform/op/optest"
	"soniq/internal/protocol/media/wav"
	"soniq/internal/telephony/prompt"
)

// fixture has a database, a service and an HTTP test server.
type fixture struct {
	*prompt.Service
	d      *db.DB
	orgs   *org.Service
	org    string
	server *optest.Server
	files  string
	wav    []byte       // one second long
	second string       // path of the file that texts become
	uses   []prompt.Use // of every audio file
}

func newFixture(t *testing.T, d *db.DB) *fixture {
	t.Helper()
	h := &fixture{d: d, files: t.TempDir()}
	orgs := org.New(d, bus.New(), time.Now)
	o, err := orgs.Create(context.Background(), "Acme", "GB")
	if err != nil {
		t.Fatal(err)
	}
	h.org = o.ID
	files, err := blob.OpenDir(h.files, blob.Alone{})
	if err != nil {
		t.Fatal(err)
	}
	second := filepath.Join(t.TempDir(), "second.wav")
	if err := wav.Write(second, wav.Audio{Rate: 8000, PCM: [][]int16{make([]int16, 8000)}}, wav.PCM16); err != nil {
		t.Fatal(err)
	}
	if h.wav, err = os.ReadFile(second); err != nil {
		t.Fatal(err)
	}
	h.orgs = orgs
	h.second = second
	h.Service = prompt.New(prompt.Config{DB: d, Files: files, BaseURL: "https://voice.example", Engine: h, Storage: orgs, Uses: h})
	h.server = optest.New(t, d, h.Operations()...)
	return h
}

// Synthesize implements prompt.Engine.
func (h *fixture) Synthesize(_ context.Context, _, _, voice, _ string) (string, error) {
	if voice == "nobody" {
		return "", op.Invalid(op.Field("voice", "unknown_voice", "no such voice"))
	}
	return h.second, nil
}

// FindUses implements prompt.UseFinder.
func (h *fixture) FindUses(_ context.Context, _ db.Querier, org, _ string) ([]prompt.Use, error) {
	if org != h.org {
		return nil, fmt.Errorf("asked about %s", org)
	}
	return h.uses, nil
}

// Measure implements prompt.Engine.
func (h *fixture) Measure(path string) (time.Duration, error) {
	w, err := wav.Read(path)
	if err != nil {
		return 0, errors.New("no WAV")
	}
	return time.Duration(len(w.PCM[0])) * time.Second / time.Duration(w.Rate), nil
}

func (h *fixture) do(method, path string, body any, header ...string) *optest.Answer {
	return h.server.Do(optest.Admin(h.org), method, path, body, header...)
}

// upload posts a form with a file named hello.wav. Fields are "name=value".
func (h *fixture) upload(file []byte, fields ...string) *optest.Answer {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, f := range fields {
		name, value, _ := strings.Cut(f, "=")
		_ = w.WriteField(name, value)
	}
	if file != nil {
		part, _ := w.CreateFormFile("file", "hello.wav")
		_, _ = part.Write(file)
	}
	_ = w.Close()
	return h.do("POST", "/audio", b.String(), "Content-Type: "+w.FormDataContentType(), "Idempotency-Key: "+db.NewID("key"))
}

// isNotFound reports whether an error is ErrNone and an *op.Error.
func isNotFound(err error) bool {
	var e *op.Error
	return errors.Is(err, prompt.ErrNotFound) && errors.As(err, &e) && e.Code == "validation_failed"
}

// storedFiles returns the number of stored files.
func (h *fixture) storedFiles(t *testing.T) (n int) {
	t.Helper()
	err := filepath.WalkDir(h.files, func(_ string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			n++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestAudio_UploadAndFetch(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		a := h.upload(h.wav, "kind=music").Want(201)
		id := a.Text("id")
		if a.Text("name") != "hello" || a.Text("format") != "wav" || a.At("duration_seconds") != float64(1) || a.Text("source") != "upload" ||
			a.Text("kind") != "music" || a.At("text") != nil || a.At("size_bytes") != float64(len(h.wav)) {
			t.Errorf("got %s", a.Bytes)
		}
		got := h.do("GET", strings.TrimPrefix(a.Text("url"), "https://voice.example"+op.Prefix), nil).Want(200)
		if !bytes.Equal(got.Bytes, h.wav) || got.Header.Get("Content-Type") != "audio/wav" {
			t.Errorf("%d bytes of %s", len(got.Bytes), got.Header.Get("Content-Type"))
		}
		if part := h.do("GET", "/audio/"+id+"/content", nil, "Range: bytes=0-3").Want(206); string(part.Bytes) != "RIFF" {
			t.Errorf("a range is %q", part.Bytes)
		}
		path, err := h.Path(context.Background(), h.org, id)
		if on, _ := os.ReadFile(path); err != nil || !bytes.Equal(on, h.wav) {
			t.Errorf("on disk: %s %v", path, err)
		}
		h.do("DELETE", "/audio/"+id, nil).Want(204)
		h.do("GET", "/audio/"+id+"/content", nil).Want(404)
		if _, err := h.Path(context.Background(), h.org, id); !isNotFound(err) || h.storedFiles(t) != 0 {
			t.Errorf("after it was removed: %v, %d files", err, h.storedFiles(t))
		}
	})
}

func TestAudio_SpeechStored(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	a := h.do("POST", "/audio", `{"text":" We are closed. ","voice":"rms","language":"en","kind":"greeting"}`).Want(201)
	if a.Text("text") != "We are closed." || a.Text("name") != "We are closed." || a.Text("voice") != "rms" || a.Text("source") != "speech" {
		t.Errorf("got %s", a.Bytes)
	}
	if got := h.do("GET", "/audio/"+a.Text("id")+"/content", nil).Want(200); !bytes.Equal(got.Bytes, h.wav) {
		t.Errorf("%d bytes", len(got.Bytes))
	}
	h.do("POST", "/audio", `{"text":"x","voice":"nobody"}`).Want(422).Refused("validation_failed", "voice unknown_voice")
	h.do("POST", "/audio", `{"text":""}`).Want(422).Refused("validation_failed", "text invalid_length", "name invalid_length")
	h.do("POST", "/audio", `{"txet":"x"}`).Want(400).Refused("unknown_field")
	h.do("POST", "/audio", `{"text":"x","TEXT":"y"}`).Want(400).Refused("unknown_field", "TEXT unknown_field")
	h.do("POST", "/audio", "{\"text\":\"\xff\"}").Want(400).Refused("malformed_json", "text invalid_utf8")
	h.do("POST", "/audio", `{`).Want(400).Refused("malformed_json")
	if n := h.storedFiles(t); n != 1 {
		t.Errorf("%d files are kept", n)
	}
}

func TestAudio_UnplayableRefused(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	h.upload([]byte("hello")).Want(422).Refused("validation_failed", "file unsupported_format")
	h.upload(h.wav[:40]).Want(422).Refused("validation_failed", "file unreadable")
	h.upload([]byte("ID3\x04 and no sound")).Want(422).Refused("validation_failed", "file unreadable")
	h.upload(nil).Want(422).Refused("validation_failed", "file required")
	h.upload(h.wav, "kind=opera", "name="+strings.Repeat("x", 121)).Want(422).Refused("validation_failed", "kind invalid_value", "name invalid_length")
	h.upload(h.wav, "colour=red").Want(400).Refused("unknown_field")
	h.do("POST", "/audio", "RIFF", "Content-Type: audio/wav").Want(415).Refused("unsupported_media_type")
	h.do("POST", "/audio", "--x\r\nbroken", "Content-Type: multipart/form-data; boundary=x").Want(400)
	h.upload(bytes.Repeat([]byte{0}, 21<<20)).Want(413).Refused("payload_too_large")
	if n := h.storedFiles(t); n != 0 {
		t.Errorf("%d files are kept", n)
	}
}

func TestAudio_LargeUploadIdempotent(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	long := filepath.Join(t.TempDir(), "long.wav")
	if err := wav.Write(long, wav.Audio{Rate: 8000, PCM: [][]int16{make([]int16, 2<<20)}}, wav.PCM16); err != nil {
		t.Fatal(err)
	}
	file, _ := os.ReadFile(long)
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	part, _ := w.CreateFormFile("file", "a.wav")
	_, _ = part.Write(file)
	_ = w.Close()
	first := h.do("POST", "/audio", b.String(), "Content-Type: "+w.FormDataContentType(), "Idempotency-Key: k").Want(201)
	again := h.do("POST", "/audio", b.String(), "Content-Type: "+w.FormDataContentType(), "Idempotency-Key: k").Want(201)
	if !bytes.Equal(bytes.TrimSpace(first.Bytes), bytes.TrimSpace(again.Bytes)) || h.storedFiles(t) != 1 ||
		first.At("size_bytes") != float64(len(file)) {
		t.Errorf("%s then %s; %d files", first.Bytes, again.Bytes, h.storedFiles(t))
	}
}

func TestAudio_InUseNotDeleted(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	id := h.upload(h.wav).Want(201).Text("id")
	h.uses = []prompt.Use{{Type: "organization", ID: h.org}}
	a := h.do("DELETE", "/audio/"+id, nil).Want(409).Refused("in_use")
	if !strings.Contains(string(a.Bytes), h.org) {
		t.Errorf("who uses it? %s", a.Bytes)
	}
	if a := h.do("GET", "/audio/"+id, nil).Want(200); a.Text("used_by.0.type") != "organization" {
		t.Errorf("got %s", a.Bytes)
	}
}

func TestAudio_ListByKindAndName(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	for _, name := range []string{"Jazz", "Rock", "Jazz two"} {
		h.upload(h.wav, "name="+name, "kind=music").Want(201)
	}
	h.upload(h.wav, "name=jazz hello").Want(201)
	a := h.do("GET", "/audio?kind=music&q=jazz&include_total=true&limit=1", nil).Want(200)
	if a.Text("data.0.name") != "Jazz" || a.At("total") != float64(2) || a.At("has_more") != true {
		t.Errorf("got %s", a.Bytes)
	}
	if a = h.do("GET", "/audio?kind=music&q=jazz&limit=1&cursor="+a.Text("next_cursor"), nil).Want(200); a.Text("data.0.name") != "Jazz two" {
		t.Errorf("got %s", a.Bytes)
	}
}

func TestAudio_OtherOrganisationNotFound(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	id := h.upload(h.wav).Want(201).Text("id")
	other, err := org.New(h.d, bus.New(), time.Now).Create(context.Background(), "Other", "GB")
	if err != nil {
		t.Fatal(err)
	}
	p := optest.Admin(other.ID)
	h.server.Do(p, "GET", "/audio/"+id, nil).Want(404)
	h.server.Do(p, "GET", "/audio/"+id+"/content", nil).Want(404)
	h.server.Do(p, "DELETE", "/audio/"+id, nil).Want(404)
	if _, err := h.Path(context.Background(), other.ID, id); !isNotFound(err) {
		t.Errorf("its path: %v", err)
	}
}

// https://github.com/Mnexa-AI/e2a/issues/804
func TestAudio_FormNotUTF8(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	send := func(parts ...string) *optest.Answer {
		form := ""
		for _, p := range parts {
			form += "--x\r\nContent-Disposition: form-data; " + p + "\r\n"
		}
		return h.do("POST", "/audio", form+"--x--\r\n", "Content-Type: multipart/form-data; boundary=x", "Idempotency-Key: "+db.NewID("key"))
	}
	wave := string(h.wav)
	for name, c := range map[string]struct {
		part   string
		status int
		want   []string
	}{
		"value":           {"name=name\r\n\r\ncaf\xe9", 400, []string{"malformed_json", "name invalid_utf8"}},
		"NUL":             {"name=name\r\n\r\na\x00b", 400, []string{"malformed_json", "name invalid_utf8"}},
		"name of a part":  {"name=\"n\xe9\"\r\n\r\nx", 400, []string{"malformed_json", "body invalid_utf8"}},
		"other charset":   {"name=name\r\nContent-Type: text/plain; charset=iso-8859-1\r\n\r\ncaf\xe9", 415, []string{"unsupported_media_type"}},
		"charset of text": {"name=kind\r\nContent-Type: text/plain; charset=utf-16\r\n\r\nprompt", 415, []string{"unsupported_media_type"}},
	} {
		a := send("name=file; filename=a.wav\r\n\r\n"+wave, c.part)
		if a.Status != c.status {
			t.Errorf("%s: %d %s", name, a.Status, a.Bytes)
			continue
		}
		a.Refused(c.want[0], c.want[1:]...)
	}
	for _, filename := range []string{"filename=\"caf\xe9.wav\"", "filename*=utf-8''caf%ff.wav", "filename*=utf-8''a%00.wav"} {
		send("name=file; "+filename+"\r\n\r\n"+wave).Want(400).Refused("malformed_json", "file.filename invalid_utf8")
	}
	if n := h.storedFiles(t); n != 0 {
		t.Errorf("%d files are kept", n)
	}
	if a := send("name=file; filename*=utf-8''caf%C3%A9.wav\r\n\r\n" + wave).Want(201); a.Text("name") != "café" {
		t.Errorf("got %s", a.Bytes)
	}
}
