package speech

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"soniq/internal/intelligence/engine"
	"soniq/internal/intelligence/transcript"
)

// openAISynthesizer synthesises speech on an OpenAI-compatible server.
type openAISynthesizer struct {
	endpoint *engine.Endpoint
	model    string
}

// defaultVoice is a voice that every such server has.
const defaultVoice = "alloy"

// Identity returns the host of the server and the model.
func (r *openAISynthesizer) Identity() string { return r.endpoint.Host + " " + r.model }

// Ready synthesises one word as a test.
func (r *openAISynthesizer) Ready(ctx context.Context) error {
	if _, _, err := r.Synthesize(ctx, "Hello.", "", ""); err != nil {
		return &transcript.MissingDependency{Problem: "the voice server does not answer: " + err.Error(),
			Remedy: "check SONIQ_VOICE and SONIQ_ALLOW_TARGETS, or set SONIQ_VOICE=builtin"}
	}
	return nil
}

// Synthesize speaks a text. The server detects the language from the text, because the protocol has no member for it.
func (r *openAISynthesizer) Synthesize(ctx context.Context, text, voice, _ string) ([]int16, int, error) {
	if voice == "" {
		voice = defaultVoice
	}
	body, err := json.Marshal(map[string]string{"model": r.model, "input": text, "voice": voice, "response_format": "wav"})
	if err != nil {
		return nil, 0, fmt.Errorf("encode request: %w", err)
	}
	answer, err := r.endpoint.Fetch(ctx, "application/json", "audio/wav", body)
	var no *engine.StatusError
	if errors.As(err, &no) && (no.Status == 400 || no.Status == 422) {
		return nil, 0, fmt.Errorf("%w or cannot speak this text: %s", ErrUnknownVoice, no.Message)
	}
	if err != nil {
		return nil, 0, err
	}
	pcm, rate, err := readWAV(answer)
	if err != nil {
		return nil, 0, fmt.Errorf("ask %s: %w", r.endpoint.Host, err)
	}
	return pcm, rate, nil
}

// errNotWAV is returned if the response has another format than the requested one.
var errNotWAV = errors.New("the answer is no WAV file of 16-bit samples")

// readWAV reads a RIFF file as servers stream it: the sizes in its headers may be unknown (0 or all ones). It returns
// the first channel.
func readWAV(b []byte) (pcm []int16, rate int, err error) {
	if len(b) < 12 || string(b[:4]) != "RIFF" || string(b[8:12]) != "WAVE" {
		return nil, 0, errNotWAV
	}
	channels := 0
	for b = b[12:]; len(b) >= 8; {
		name, size := string(b[:4]), int(binary.LittleEndian.Uint32(b[4:]))
		b = b[8:]
		if name == "data" || size > len(b) {
			size = min(size, len(b))
			if size == 0 {
				size = len(b)
			}
		}
		chunk := b[:size]
		switch name {
		case "fmt ":
			if size < 16 || binary.LittleEndian.Uint16(chunk) != 1 || binary.LittleEndian.Uint16(chunk[14:]) != 16 {
				return nil, 0, errNotWAV
			}
			channels, rate = int(binary.LittleEndian.Uint16(chunk[2:])), int(binary.LittleEndian.Uint32(chunk[4:]))
		case "data":
			if channels < 1 || channels > 8 || rate < 4000 || rate > 192_000 {
				return nil, 0, errNotWAV
			}
			return firstChannel(chunk, channels), rate, nil
		}
		b = b[min(size+size&1, len(b)):]
	}
	return nil, 0, errNotWAV
}

func firstChannel(data []byte, channels int) []int16 {
	pcm := make([]int16, len(data)/2/channels)
	for i := range pcm {
		pcm[i] = int16(binary.LittleEndian.Uint16(data[2*channels*i:]))
	}
	return pcm
}
