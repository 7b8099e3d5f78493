package plausibility

import (
	"errors"
	"slices"
	"testing"

	"soniq/internal/intelligence/transcript"
	"soniq/internal/protocol/media/wav"
)

// https://github.com/moonshine-ai/moonshine/issues/83, https://github.com/amicalhq/amical/issues/71
func TestOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text, language string
		want           Doubt
	}{
		{"Call me back tomorrow.", "en", None}, {"", "en", Empty}, {" . ", "en", Empty},
		{"…!", "", Empty}, {"42", "en", None},
		{"3, 2, 3, 2, 3, 2, 3, 2", "en", Loop}, {"I want to, I want to, I want to, I want to", "en-GB", Loop},
		{"the the the the the the the", "en", Loop}, {"um ein Uhr, um ein Uhr, um ein Uhr", "de", Loop},
		{"Да нет, да нет, да нет", "ru", Loop},
		{"谢谢观看谢谢观看谢谢观看", "zh", Loop}, {"No, no, no.", "en", None}, {"Hello? Hello? Hello?", "en", None},
		{"four one one one one one one one one", "en", None}, {"one one one one one one one one", "en", None},
		{"0 0 0 0 0 0 0 0", "en", None},
		{"bye bye, bye bye", "en", None}, {"eins zwei eins zwei", "de", None}, {"zéro zéro zéro zéro zéro zéro sept", "fr", None},
		{"今天天气", "en", Letters}, {"Guten Tag 你好", "de", Letters}, {"Здравствуйте", "en", Letters}, {"Hello שלום", "fr-CA", Letters},
		{"今天天气", "ru", Letters}, {"Привет", "el", Letters}, {"こんにちは", "zh", Letters}, {"안녕하세요", "ja", Letters},
		{"привет", "vi", Letters},
		{"Здравствуйте", "ru", None}, {"你好", "zh", None}, {"你好", "zh-TW", None}, {"今日は天気", "ja", None},
		{"안녕하세요", "ko", None}, {"你好", "", None},
		{"你好", "no language", None}, {"добар дан", "sr-Latn", None},
		{"Müller, Łódź, naïve, Ångström", "en", None}, {"25 μm at 5 °C, 3 Ω", "en", None},
		{"Отправьте iPhone", "ru", None}, {"नमस्ते", "hi", None}, {"မင်္ဂလာပါ", "my", None},
	} {
		if got := Of(c.text, c.language); got != c.want {
			t.Errorf("%q in %s: %d, want %d", c.text, c.language, got, c.want)
		}
	}
}

// engineOf returns texts one after the other, and keeps the clips it got.
type engineOf struct {
	texts []string
	clips []transcript.Clip
}

func (e *engineOf) decode(c transcript.Clip) (transcript.Recognition, error) {
	text := e.texts[min(len(e.clips), len(e.texts)-1)]
	e.clips = append(e.clips, c)
	if text == "error" {
		return transcript.Recognition{}, errors.New("the engine fell over")
	}
	return transcript.Recognition{Text: text, Words: []transcript.Word{{Text: text, StartMS: 400, EndMS: c.DurationMS()}}}, nil
}

// The clip is speech of a call that an English model returned no text for.
func TestRecognize_KeepsBetterText(t *testing.T) {
	t.Parallel()
	w, err := wav.Read("../testdata/park.wav")
	if err != nil {
		t.Fatal(err)
	}
	clip := transcript.Clip{PCM: w.PCM[0], Rate: 8000, Language: "en"}
	for _, c := range []struct {
		texts   []string
		retries int
		want    string
		decoded int
		startMS int
	}{
		{[]string{"Where can I park?", "another"}, Retries, "Where can I park?", 1, 400},
		{[]string{"", "Where can I park?", "another"}, Retries, "Where can I park?", 2, 400},
		{[]string{"", "你好", "3, 2, 3, 2, 3, 2", "Where can I park?"}, Retries, "Where can I park?", 4, 500},
		{[]string{"你好", "3, 2, 3, 2, 3, 2", "你好", ""}, Retries, "3, 2, 3, 2, 3, 2", 4, 400},
		{[]string{"3, 2, 3, 2, 3, 2", "", "4 4 5 4 4 5 4 4 5", "你好"}, Retries, "3, 2, 3, 2, 3, 2", 4, 400},
		{[]string{"", "Where can I park?"}, 0, "", 1, 400},
		{[]string{"", "", "Where can I park?"}, 1, "", 2, 400},
		{[]string{"你好", "error", "Where can I park?"}, Retries, "你好", 2, 400},
	} {
		e := &engineOf{texts: c.texts}
		r, err := Recognize(clip, c.retries, e.decode)
		if err != nil || r.Text != c.want || len(e.clips) != c.decoded || r.Words[0].StartMS != c.startMS ||
			r.Words[0].EndMS > clip.DurationMS() {
			t.Errorf("%q: %+v after %d clips, %v", c.texts, r, len(e.clips), err)
		}
		for i := 1; i < len(e.clips); i++ {
			if slices.Equal(e.clips[i].PCM, clip.PCM) {
				t.Errorf("%q: clip %d is not changed", c.texts, i)
			}
		}
	}
}

func TestRecognize_NotAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]transcript.Clip{
		"silence": {PCM: make([]int16, 8000), Rate: 8000, Language: "en"},
		"a click": {PCM: []int16{9000, -9000}, Rate: 8000}, "nothing": {Rate: 8000},
	} {
		e := &engineOf{texts: []string{""}}
		if _, err := Recognize(c, Retries, e.decode); err != nil || len(e.clips) != 1 {
			t.Errorf("%s: decoded %d times, %v", name, len(e.clips), err)
		}
	}
	e := &engineOf{texts: []string{"error"}}
	if _, err := Recognize(transcript.Clip{PCM: make([]int16, 8000), Rate: 8000}, Retries, e.decode); err == nil || len(e.clips) != 1 {
		t.Errorf("decoded %d times after an error, which is %v", len(e.clips), err)
	}
}
