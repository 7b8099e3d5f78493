package prompt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/limit"
	"soniq/internal/platform/op"
)

const (
	maxForm   = 64 << 10 // bytes of a form besides the file
	maxName   = 120
	maxText   = 5000
	maxSounds = 1000 // files per organisation
)

var kinds = []string{"greeting", "prompt", "music", "voicemail_greeting"}

// Upload is a multipart form with an audio file.
type Upload struct {
	File []byte `json:"file" doc:"wav, mp3 or ogg, 20 MB at most"`
	Name string `json:"name,omitempty" doc:"That of the file unless given"`
	Kind string `json:"kind,omitempty" enum:"greeting,prompt,music,voicemail_greeting" default:"prompt"`
}

// Fresh is the JSON body with a text to synthesise.
type Fresh struct {
	Text     string `json:"text" maxLength:"5000"`
	Voice    string `json:"voice,omitempty" maxLength:"60" doc:"The engine's usual one unless given"`
	Language string `json:"language,omitempty" maxLength:"35" example:"en" doc:"Language tag"`
	Name     string `json:"name,omitempty" maxLength:"120" doc:"The beginning of the text unless given"`
	Kind     string `json:"kind,omitempty" enum:"greeting,prompt,music,voicemail_greeting" default:"prompt"`
}

// CreateIn is a multipart form or a JSON body, depending on the media type.
type CreateIn struct {
	ContentType string `header:"Content-Type"`
	RawBody     []byte
}

// Create stores an uploaded file, or the speech that it synthesises from a text. It returns after synthesis.
func (s *Service) Create(ctx context.Context, in *CreateIn) (*op.Out[Audio], error) {
	if err := checkCount(ctx, s.cfg.DB.Read(ctx), access.Org(ctx)); err != nil {
		return nil, err
	}
	if err := s.cfg.Storage.CheckStorage(ctx, access.Org(ctx)); err != nil { // checked before synthesis
		return nil, err
	}
	a := Audio{ID: db.NewID("aud"), OrgID: access.Org(ctx), CreatedAt: db.At(s.cfg.Clock.Now())}
	if err := s.storeUpload(ctx, &a, in); err != nil {
		return nil, err
	}
	err := s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		if err := s.reserve(ctx, tx, a); err != nil {
			return err
		}
		if err := insert(ctx, tx, a); err != nil {
			return fmt.Errorf("add audio: %w", err)
		}
		return s.withURLAndUses(ctx, tx, &a)
	})
	if err != nil {
		return nil, errors.Join(err, s.cfg.Files.Delete(context.WithoutCancel(ctx), a.blob))
	}
	return &op.Out[Audio]{Body: a, Location: op.Prefix + "/audio/" + a.ID}, nil
}

// checkCount returns an error if the organisation has as many sounds as it may keep.
func checkCount(ctx context.Context, q db.Querier, org string) error {
	n, err := count(ctx, q, org)
	if err != nil {
		return fmt.Errorf("count audio: %w", err)
	}
	if n >= maxSounds {
		return op.Fail("plan_limit", fmt.Sprintf("an organisation may keep %d sounds; remove some", maxSounds))
	}
	return nil
}

// reserve returns an error if the storage quota or the number of files of the organisation is used up.
func (s *Service) reserve(ctx context.Context, tx db.Querier, a Audio) error {
	if err := s.cfg.Storage.ReserveStorage(ctx, tx, a.OrgID, a.SizeBytes); err != nil {
		return err
	}
	return checkCount(ctx, tx, a.OrgID)
}

// storeUpload reads the request body and stores its audio.
func (s *Service) storeUpload(ctx context.Context, a *Audio, in *CreateIn) error {
	kind, params, err := mime.ParseMediaType(in.ContentType)
	switch {
	case err == nil && kind == "multipart/form-data":
		return s.createUpload(ctx, a, multipart.NewReader(bytes.NewReader(in.RawBody), params["boundary"]), len(in.RawBody))
	case err == nil && kind == "application/json":
		return s.createSpeech(ctx, a, in.RawBody)
	}
	return op.Fail("unsupported_media_type", "send multipart/form-data with a file, or application/json with a text")
}

func (s *Service) createUpload(ctx context.Context, a *Audio, form *multipart.Reader, size int) error {
	file, filename, err := readForm(a, form, size)
	if err != nil {
		return err
	}
	a.Source = "upload"
	if a.Name == "" {
		a.Name = strings.TrimSuffix(filepath.Base(filename), filepath.Ext(filename))
	}
	wrong := a.validate()
	if a.Format = formatOf(file); a.Format == "" && len(wrong) == 0 {
		wrong = append(wrong, op.Field("file", "unsupported_format", "must be a WAV, MP3 or Ogg file"))
	}
	if len(wrong) > 0 {
		return op.Invalid(wrong...)
	}
	return s.storeFile(ctx, a, bytes.NewReader(file))
}

// readPart reads a part of a form of some size. It asks for the memory once.
func readPart(part io.Reader, size int) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(min(size, limit.AudioFile.Int()) + bytes.MinRead)
	_, err := b.ReadFrom(io.LimitReader(part, limit.AudioFile.Default+1))
	return b.Bytes(), err
}

// readForm reads the parts of the form in any order.
func readForm(a *Audio, form *multipart.Reader, size int) (file []byte, filename string, err error) {
	for {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, "", op.Fail("malformed_json", "the form could not be read")
		}
		body, err := readPart(part, size)
		switch {
		case err != nil:
			return nil, "", op.Fail("malformed_json", "the form could not be read")
		case len(body) > limit.AudioFile.Int():
			return nil, "", op.Fail("payload_too_large", "a sound may have "+limit.AudioFile.String())
		}
		if err := op.CheckPart(part, body, part.FormName() == "file"); err != nil {
			return nil, "", err
		}
		switch part.FormName() {
		case "file":
			file, filename = body, part.FileName()
		case "name":
			a.Name = string(body)
		case "kind":
			a.Kind = string(body)
		default:
			return nil, "", op.Fail("unknown_field", "the form has a part this operation does not know: "+shorten(part.FormName()))
		}
	}
	if len(file) == 0 {
		return nil, "", op.Invalid(op.Field("file", "required", "the form needs a part named file"))
	}
	return file, filename, nil
}

func shorten(text string) string {
	if r := []rune(text); len(r) > 40 {
		return string(r[:40])
	}
	return text
}

// formatOf returns the format of an audio file from its first bytes.
func formatOf(b []byte) string {
	switch {
	case len(b) > 12 && string(b[:4]) == "RIFF" && string(b[8:12]) == "WAVE":
		return "wav"
	case bytes.HasPrefix(b, []byte("OggS")):
		return "ogg"
	case bytes.HasPrefix(b, []byte("ID3")), len(b) > 2 && b[0] == 0xff && b[1]&0xe6 == 0xe2: // MPEG audio, layer 3
		return "mp3"
	}
	return ""
}

func (s *Service) createSpeech(ctx context.Context, a *Audio, body []byte) error {
	f, err := readSpeechRequest(body)
	if err != nil {
		return err
	}
	f.Text = strings.TrimSpace(f.Text)
	a.Name, a.Kind, a.Source, a.Format = f.Name, f.Kind, "speech", "wav"
	if a.Name == "" {
		a.Name = shorten(f.Text)
	}
	wrong := a.validate()
	if f.Text == "" || len(f.Text) > maxText {
		wrong = append(wrong, op.Field("text", "invalid_length", "must have 1 to 5000 bytes"))
	}
	if len(f.Voice) > 60 || len(f.Language) > 35 {
		wrong = append(wrong, op.Field("voice", "invalid_length", "voice or language is too long"))
	}
	if len(wrong) > 0 {
		return op.Invalid(wrong...)
	}
	a.Text, a.Voice, a.Language = &f.Text, db.Null(f.Voice).Ptr(), db.Null(f.Language).Ptr()
	return s.synthesize(ctx, a, f)
}

// maxJSON limits the JSON body, in bytes.
const maxJSON = 1 << 20

// readSpeechRequest reads the JSON body of a text to synthesise. Its errors are those of every operation.
func readSpeechRequest(body []byte) (f Fresh, err error) {
	if len(body) > maxJSON {
		return f, op.Fail("payload_too_large", "a JSON body may have 1 MB")
	}
	return f, op.DecodeStrict(body, &f)
}

func (s *Service) synthesize(ctx context.Context, a *Audio, f Fresh) error {
	path, err := s.cfg.Engine.Synthesize(ctx, a.OrgID, f.Text, f.Voice, f.Language)
	if err != nil {
		return err
	}
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read what was spoken: %w", err)
	}
	defer file.Close()
	return s.storeFile(ctx, a, file)
}

// validate returns the violations of the record, and sets the default kind.
func (a *Audio) validate() []op.Violation {
	var wrong []op.Violation
	if a.Kind == "" {
		a.Kind = "prompt"
	}
	a.Name = strings.TrimSpace(a.Name)
	if n := len([]rune(a.Name)); n < 1 || n > maxName || strings.ContainsFunc(a.Name, unicode.IsControl) {
		wrong = append(wrong, op.Field("name", "invalid_length", "must have 1 to 120 characters"))
	}
	if !slices.Contains(kinds, a.Kind) {
		wrong = append(wrong, op.Field("kind", "invalid_value", "must be one of "+strings.Join(kinds, ", ")))
	}
	return wrong
}

// storeFile stores a file and measures its duration. It removes the file if it cannot be played.
func (s *Service) storeFile(ctx context.Context, a *Audio, from io.Reader) (err error) {
	a.blob = a.OrgID + "/audio/" + a.ID + "." + a.Format
	if a.SizeBytes, err = s.cfg.Files.Put(ctx, a.blob, from); err != nil {
		return fmt.Errorf("store audio: %w", err)
	}
	path, err := s.cfg.Files.Path(a.blob)
	if err != nil {
		return err
	}
	if a.Duration, err = s.cfg.Engine.Measure(path); err != nil {
		_ = s.cfg.Files.Delete(context.WithoutCancel(ctx), a.blob)
		if errors.Is(err, ErrTooLong) {
			return op.Invalid(op.Field("file", "too_long", "plays longer than "+limit.AudioLength.String()+"; upload a shorter file"))
		}
		return op.Invalid(op.Field("file", "unreadable", "cannot be played: "+err.Error()))
	}
	return nil
}
