package engine

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"mime/multipart"
	"strings"
	"sync/atomic"

	"soniq/internal/intelligence/transcript"
)

// The forms a transcription is asked for, best first. Servers differ in which they understand: the first that works is
// remembered.
var hearingForms = []map[string]string{
	{"response_format": "verbose_json", "timestamp_granularities[]": "word"},
	{"response_format": "verbose_json"},
	{"response_format": "json"},
}

// remoteListener recognises speech on an OpenAI-compatible server. Each speech segment of each side is a request of its
// own, so that turns, times and speakers are right whatever the server makes of long audio.
type remoteListener struct {
	server *server
	model  string
	form   atomic.Int32 // index of the first form that may work
	mute   atomic.Bool  // it refuses to be told what may be said
}

// Engine names server and model.
func (r *remoteListener) Engine() transcript.Engine {
	return transcript.Engine{Name: "openai-compatible", Model: r.model, Version: r.server.host}
}

// Ready sends a second of silence, which also finds the form the server understands.
func (r *remoteListener) Ready(ctx context.Context) error {
	_, err := r.Transcribe(ctx, transcript.Clip{PCM: make([]int16, 16000), Rate: 16000, Language: "en"})
	if err != nil {
		return &transcript.Missing{What: "the transcriber does not answer: " + err.Error(),
			Help: "check SONIQ_TRANSCRIBER and SONIQ_ALLOW_TARGETS, or set SONIQ_TRANSCRIBER=builtin"}
	}
	return nil
}

// Transcribe recognises one clip.
func (r *remoteListener) Transcribe(ctx context.Context, c transcript.Clip) (transcript.Heard, error) {
	var err error
	prompt := promptOf(c.Terms)
	if r.mute.Load() {
		prompt = ""
	}
	for form := int(r.form.Load()); form < len(hearingForms); form++ {
		var a hearing
		if a, err = r.try(ctx, c, form, prompt); prompt != "" && dialect(err) {
			if a, err = r.try(ctx, c, form, ""); err == nil {
				r.mute.Store(true)
			}
		}
		if err == nil {
			r.form.Store(int32(form))
			return notEchoed(a.heard(c), prompt), nil
		}
		if !dialect(err) {
			break
		}
	}
	return transcript.Heard{}, fmt.Errorf("transcribe %d ms: %w", c.DurationMS(), err)
}

// try asks in one form.
func (r *remoteListener) try(ctx context.Context, c transcript.Clip, form int, prompt string) (a hearing, err error) {
	kind, body := r.request(c, hearingForms[form], prompt)
	err = r.server.post(ctx, kind, body, &a)
	return a, err
}

// longestPrompt is how much of the terms a server is told, in bytes: Whisper looks at the last 224 tokens.
const longestPrompt = 600

// promptOf tells a server what may be said: the most relevant terms.
func promptOf(terms []transcript.Term) string {
	var b strings.Builder
	for _, t := range terms {
		if b.Len()+len(", ")+len(t.Text) > longestPrompt {
			break
		}
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		b.WriteString(t.Text)
	}
	return b.String()
}

// notEchoed drops what is only a piece of the prompt: some models say what they were told where nobody spoke.
func notEchoed(h transcript.Heard, prompt string) transcript.Heard {
	said := strings.ToLower(strings.TrimRight(strings.TrimSpace(h.Text), "."))
	if strings.Contains(said, ", ") && strings.Contains(strings.ToLower(prompt), said) {
		return transcript.Heard{}
	}
	return h
}

// request is the multipart body of one clip.
func (r *remoteListener) request(c transcript.Clip, form map[string]string, prompt string) (kind string, body []byte) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	part, _ := w.CreateFormFile("file", "speech.wav") // writing into a buffer does not fail
	_, _ = part.Write(wavOf(c))
	_ = w.WriteField("model", r.model)
	_ = w.WriteField("temperature", "0")
	if language, _, _ := strings.Cut(c.Language, "-"); language != "" {
		_ = w.WriteField("language", language)
	}
	if prompt != "" {
		_ = w.WriteField("prompt", prompt)
	}
	for name, value := range form {
		_ = w.WriteField(name, value)
	}
	_ = w.Close()
	return w.FormDataContentType(), b.Bytes()
}

// shortest is what servers accept at least, in seconds: shorter clips get silence behind them.
const shortest = 0.5

// wavOf writes a clip as a WAV file.
func wavOf(c transcript.Clip) []byte {
	n := max(len(c.PCM), int(shortest*float64(c.Rate)))
	b := make([]byte, 0, 44+2*n)
	b = append(b, "RIFF"...)
	b = binary.LittleEndian.AppendUint32(b, uint32(36+2*n))
	b = append(b, "WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00"...)
	b = binary.LittleEndian.AppendUint32(b, uint32(c.Rate))
	b = binary.LittleEndian.AppendUint32(b, uint32(2*c.Rate))
	b = append(b, "\x02\x00\x10\x00data"...)
	b = binary.LittleEndian.AppendUint32(b, uint32(2*n))
	for _, v := range c.PCM {
		b = binary.LittleEndian.AppendUint16(b, uint16(v))
	}
	return append(b, make([]byte, 2*(n-len(c.PCM)))...)
}

// hearing is an answer in any of its forms: words stand beside the segments or within them.
type hearing struct {
	Text     string
	Words    []heardWord
	Segments []struct {
		Text       string
		Words      []heardWord
		LogProb    float64 `json:"avg_logprob"`
		NoSpeech   float64 `json:"no_speech_prob"`
		Start, End float64
	}
}

type heardWord struct {
	Word        string
	Text        string
	Start, End  float64
	Probability *float64
}

// Whisper's own rule for segments that it made up where nobody spoke.
const (
	noSpeechFrom = 0.6
	logProbBelow = -1
)

func (h hearing) heard(c transcript.Clip) transcript.Heard {
	var out transcript.Heard
	words, text, certainty, n := h.Words, []string{}, 0.0, 0
	for _, s := range h.Segments {
		if s.NoSpeech > noSpeechFrom && s.LogProb < logProbBelow {
			continue
		}
		text = append(text, strings.TrimSpace(s.Text))
		if s.LogProb < 0 {
			certainty, n = certainty+math.Exp(s.LogProb), n+1
		}
		if len(h.Words) == 0 {
			words = append(words, s.Words...)
		}
	}
	out.Text = strings.TrimSpace(h.Text)
	if len(h.Segments) > 0 {
		out.Text = strings.Join(text, " ")
	}
	if out.Text == "" {
		return transcript.Heard{}
	}
	if n > 0 {
		out.Confidence = certainty / float64(n)
	}
	out.Words = timed(words, out.Confidence, c.DurationMS())
	if out.Confidence == 0 {
		out.Confidence = meanConfidence(out.Words)
	}
	return out
}

// timed brings words into our form, within the clip.
func timed(words []heardWord, confidence float64, duration int) []transcript.Word {
	var out []transcript.Word
	for _, w := range words {
		text := strings.TrimSpace(w.Word + w.Text)
		if text == "" {
			continue
		}
		word := transcript.Word{Text: text, StartMS: min(max(int(w.Start*1000), 0), duration), Confidence: confidence}
		word.EndMS = min(max(int(w.End*1000), word.StartMS), duration)
		if w.Probability != nil {
			word.Confidence = min(max(*w.Probability, 0), 1)
		}
		out = append(out, word)
	}
	return out
}

func meanConfidence(words []transcript.Word) float64 {
	sum := 0.0
	for _, w := range words {
		sum += w.Confidence / float64(len(words))
	}
	return sum
}
