package speech

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"mime/multipart"
	"strings"
	"sync/atomic"

	"soniq/internal/intelligence/engine"
	"soniq/internal/intelligence/engine/speech/plausibility"
	"soniq/internal/intelligence/transcript"
)

// transcriptionFormats lists the response formats to request, best first. Servers differ in the formats they support;
// the first that works is remembered.
var transcriptionFormats = []map[string]string{
	{"response_format": "verbose_json", "timestamp_granularities[]": "word"},
	{"response_format": "verbose_json"},
	{"response_format": "json"},
}

// openAIRecognizer recognises speech on an OpenAI-compatible server. Each speech segment of each side is a separate
// request, so that turns, times and speakers are correct however the server splits long audio.
type openAIRecognizer struct {
	endpoint       *engine.Endpoint
	model          string
	form           atomic.Int32 // index of the first format that may work
	promptRejected atomic.Bool  // it rejects the prompt parameter
}

// Engine returns the model and the host of the server.
func (r *openAIRecognizer) Engine() transcript.Engine {
	return transcript.Engine{Name: "openai-compatible", Model: r.model, Version: r.endpoint.Host}
}

// Ready sends a second of silence, which also determines the response format that the server supports.
func (r *openAIRecognizer) Ready(ctx context.Context) error {
	_, err := r.decode(ctx, transcript.Clip{PCM: make([]int16, 16000), Rate: 16000, Language: "en"})
	if err != nil {
		return &transcript.MissingDependency{Problem: "the transcriber does not answer: " + err.Error(),
			Remedy: "check SONIQ_TRANSCRIBER and SONIQ_ALLOW_TARGETS, or set SONIQ_TRANSCRIBER=builtin"}
	}
	return nil
}

// serverRetries is how often a clip is recognised again: each request takes time, and may cost money.
const serverRetries = 1

// Transcribe recognises one clip, and once more, slightly changed, if the text is doubtful.
func (r *openAIRecognizer) Transcribe(ctx context.Context, c transcript.Clip) (transcript.Recognition, error) {
	return plausibility.Recognize(c, serverRetries, func(c transcript.Clip) (transcript.Recognition, error) { return r.decode(ctx, c) })
}

// decode recognises one clip as it is. If the server rejects the prompt with the terms, it repeats the request without one
// and sends no prompt from then on.
func (r *openAIRecognizer) decode(ctx context.Context, c transcript.Clip) (transcript.Recognition, error) {
	var err error
	prompt := termsPrompt(c.Terms)
	if r.promptRejected.Load() {
		prompt = ""
	}
	for form := int(r.form.Load()); form < len(transcriptionFormats); form++ {
		var a transcriptionResponse
		if a, err = r.tryFormat(ctx, c, form, prompt); prompt != "" && engine.IsUnsupported(err) {
			if a, err = r.tryFormat(ctx, c, form, ""); err == nil {
				r.promptRejected.Store(true)
			}
		}
		if err == nil {
			r.form.Store(int32(form))
			return withAddresses(dropPromptEcho(a.recognition(c), prompt), c.Language), nil
		}
		if !engine.IsUnsupported(err) {
			break
		}
		if rejectsLanguage(err) {
			return transcript.Recognition{}, &transcript.UnsupportedLanguage{Language: c.Language,
				MissingDependency: transcript.MissingDependency{Remedy: recognizerRemedy,
					Problem: fmt.Sprintf("the transcriber does not know the language %s: %v", c.Language, err)}}
		}
	}
	return transcript.Recognition{}, fmt.Errorf("transcribe %d ms: %w", c.DurationMS(), err)
}

// rejectsLanguage reports whether a server rejected a request because of its language.
func rejectsLanguage(err error) bool {
	var r *engine.StatusError
	return errors.As(err, &r) && engine.IsUnsupported(err) && strings.Contains(strings.ToLower(r.Message), "language")
}

// tryFormat sends the clip with one response format.
func (r *openAIRecognizer) tryFormat(ctx context.Context, c transcript.Clip, form int, prompt string) (a transcriptionResponse, err error) {
	kind, body := r.request(c, transcriptionFormats[form], prompt)
	err = r.endpoint.Post(ctx, kind, body, &a)
	return a, err
}

// maxPromptBytes limits the terms in the prompt: Whisper uses the last 224 tokens only.
const maxPromptBytes = 600

// termsPrompt returns the prompt with the most relevant terms, within maxPromptBytes.
func termsPrompt(terms []transcript.Term) string {
	var b strings.Builder
	for _, t := range terms {
		if b.Len()+len(", ")+len(t.Text) > maxPromptBytes {
			break
		}
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		b.WriteString(t.Text)
	}
	return b.String()
}

// dropPromptEcho drops text that is only a part of the prompt: some models repeat the prompt if the audio has no
// speech.
func dropPromptEcho(h transcript.Recognition, prompt string) transcript.Recognition {
	said := strings.ToLower(strings.TrimRight(strings.TrimSpace(h.Text), "."))
	if strings.Contains(said, ", ") && strings.Contains(strings.ToLower(prompt), said) {
		return transcript.Recognition{}
	}
	return h
}

// request returns the multipart body of one clip.
func (r *openAIRecognizer) request(c transcript.Clip, form map[string]string, prompt string) (kind string, body []byte) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	part, _ := w.CreateFormFile("file", "speech.wav") // writing to a buffer does not fail
	_, _ = part.Write(wavOf(c))
	_ = w.WriteField("model", r.model)
	_ = w.WriteField("temperature", "0")
	_ = w.WriteField("language", transcript.BaseLanguage(c.Language))
	if prompt != "" {
		_ = w.WriteField("prompt", prompt)
	}
	for name, value := range form {
		_ = w.WriteField(name, value)
	}
	_ = w.Close()
	return w.FormDataContentType(), b.Bytes()
}

// minSeconds is the shortest audio that servers accept; shorter clips are padded with silence.
const minSeconds = 0.5

// wavOf returns a clip as a WAV file.
func wavOf(c transcript.Clip) []byte {
	n := max(len(c.PCM), int(minSeconds*float64(c.Rate)))
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

// transcriptionResponse is a response in any of its formats: words are beside the segments or within them.
type transcriptionResponse struct {
	Text     string
	Words    []responseWord
	Segments []struct {
		Text       string
		Words      []responseWord
		LogProb    float64 `json:"avg_logprob"`
		NoSpeech   float64 `json:"no_speech_prob"`
		Start, End float64
	}
}

type responseWord struct {
	Word        string
	Text        string
	Start, End  float64
	Probability *float64
}

// Thresholds of Whisper's own rule for segments that it invented in silence.
const (
	minNoSpeechProb = 0.6
	maxLogProb      = -1
)

func (h transcriptionResponse) recognition(c transcript.Clip) transcript.Recognition {
	var out transcript.Recognition
	words, text, certainty, n := h.Words, []string{}, 0.0, 0
	for _, s := range h.Segments {
		if s.NoSpeech > minNoSpeechProb && s.LogProb < maxLogProb || isAnnotation(s.Text) {
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
	if out.Text == "" || isAnnotation(out.Text) {
		return transcript.Recognition{}
	}
	if n > 0 {
		out.Confidence = certainty / float64(n)
	}
	out.Words = timedWords(words, out.Confidence, c.DurationMS())
	if out.Confidence == 0 {
		out.Confidence = meanConfidence(out.Words)
	}
	return out
}

// isAnnotation reports whether a text only describes a sound, such as [BLANK_AUDIO], (music playing), *sighs* or ♪.
func isAnnotation(text string) bool {
	text = strings.Trim(strings.TrimSpace(text), "♪♫ ")
	if text == "" {
		return true
	}
	for _, mark := range []struct{ open, end string }{{"[", "]"}, {"(", ")"}, {"*", "*"}} {
		if inner, ok := strings.CutPrefix(text, mark.open); ok && strings.Index(inner, mark.end) == len(inner)-1 {
			return true
		}
	}
	return false
}

// timedWords converts words and limits their times to the clip.
func timedWords(words []responseWord, confidence float64, duration int) []transcript.Word {
	var out []transcript.Word
	for _, w := range words {
		text := strings.TrimSpace(w.Word + w.Text)
		if text == "" || isAnnotation(text) {
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
