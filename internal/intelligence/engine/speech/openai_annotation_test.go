package speech

import (
	"encoding/json"
	"testing"

	"soniq/internal/intelligence/transcript"
)

// TestOpenAIRecognizer_AnnotationsAreNoWords proves that descriptions of silence and sounds are no words of a caller.
//
// https://github.com/ggml-org/whisper.cpp/pull/2629
func TestOpenAIRecognizer_AnnotationsAreNoWords(t *testing.T) {
	t.Parallel()
	for response, want := range map[string]string{
		`{"text":" [BLANK_AUDIO]"}`: "",
		`{"text":"(upbeat music)","segments":[{"text":"(upbeat music)","avg_logprob":-0.2}]}`: "",
		`{"text":"♪ ♪"}`:     "",
		`{"text":"*sighs*"}`: "",
		`{"text":" Hello. [BLANK_AUDIO]","segments":[{"text":" Hello.","words":[{"word":" Hello."}]},{"text":" [BLANK_AUDIO]","words":[{"word":" [BLANK_AUDIO]"}]}]}`: "Hello.",
		`{"text":"the number (it is new) is five"}`: "the number (it is new) is five",
		`{"text":"[one] and [two]"}`:                "[one] and [two]",
	} {
		var r transcriptionResponse
		if err := json.Unmarshal([]byte(response), &r); err != nil {
			t.Fatal(err)
		}
		got := r.recognition(transcript.Clip{PCM: make([]int16, 8000), Rate: 8000})
		if got.Text != want || len(got.Words) > 1 {
			t.Errorf("%s is heard as %q, words %v", response, got.Text, got.Words)
		}
	}
}
