package speech

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"unsafe"

	"soniq/internal/intelligence/engine/speech/sherpatest"
)

// printLayout makes the library print a structure in which each used field, and each field behind an unused one, has
// a distinct value. The library exits the process, because it rejects such a model.
func printLayout(folder string) {
	lib, err := loadSherpa(folder, "")
	if err != nil {
		panic(err)
	}
	var c cStrings
	s := &sherpaConfig{SampleRate: 16001, FeatureDim: 81, Decoding: c.text("decoding"), MaxActivePaths: 5, HotwordsFile: c.text("hotwords"),
		HotwordsScore: 2.5, RuleFSTs: c.text("fsts"), RuleFARs: c.text("fars"), BlankPenalty: 3.5, LanguageModel: c.text("lm"), LanguageScale: 4.5}
	x := &s.Model
	x.Transducer.Encoder, x.Transducer.Decoder, x.Transducer.Joiner = c.text("te"), c.text("td"), c.text("tj")
	x.Paraformer, x.NeMoCTC, x.TDNN, x.Tokens, x.Provider, x.Type = c.text("pa"), c.text("ne"), c.text("tn"), c.text("to"), c.text("cpu"), c.text("ty")
	x.Whisper.Encoder, x.Whisper.Decoder, x.Whisper.Language, x.Whisper.Task = c.text("we"), c.text("wd"), c.text("wl"), c.text("wt")
	x.Whisper.TailPaddings, x.Whisper.TokenTimestamps = 77, 1
	x.Threads, x.Debug, x.TeleSpeech = 3, 1, c.text("te")
	x.SenseVoice.Model, x.SenseVoice.Language, x.SenseVoice.Normalise = c.text("sm"), c.text("sl"), 1
	x.Moonshine.Preprocessor, x.Moonshine.Encoder = c.text("mp"), c.text("me")
	x.Moonshine.Uncached, x.Moonshine.Cached, x.Moonshine.Merged = c.text("mu"), c.text("mc"), c.text("mm")
	x.ZipformerCTC, x.WeNetCTC, x.Omnilingual, x.MedASR = c.text("zc"), c.text("wc"), c.text("om"), c.text("md")
	x.FireRedCTC, x.Qwen3.Hotwords, x.Cohere.Files[0] = c.text("fc"), c.text("qh"), c.text("ce")
	lib.open(unsafe.Pointer(s))
}

func TestSherpaStructs_MatchLibrary(t *testing.T) {
	t.Parallel()
	out, _ := exec.Command(os.Args[0], "sherpa-layout", sherpatest.Library(t)).CombinedOutput()
	for _, want := range []string{"sampling_rate=16001, feature_dim=81", `transducer=OfflineTransducerModelConfig(encoder_filename="te", decoder_filename="td", joiner_filename="tj")`,
		`ParaformerModelConfig(model="pa")`, `NemoEncDecCtcModelConfig(model="ne")`, `WhisperModelConfig(encoder="we", decoder="wd", language="wl", task="wt", tail_paddings=77, enable_token_timestamps=True`,
		`TdnnModelConfig(model="tn")`, `ZipformerCtcModelConfig(model="zc")`, `WenetCtcModelConfig(model="wc")`, `SenseVoiceModelConfig(model="sm", language="sl", use_itn=True)`,
		`MoonshineModelConfig(preprocessor="mp", encoder="me", uncached_decoder="mu", cached_decoder="mc", merged_decoder="mm"`, `OmnilingualAsrCtcModelConfig(model="om")`,
		`MedAsrCtcModelConfig(model="md")`, `FireRedAsrCtcModelConfig(model="fc")`, `hotwords="qh"`, `CohereTranscribeModelConfig(encoder="ce"`,
		`telespeech_ctc="te", tokens="to", num_threads=3, debug=True, provider="cpu", model_type="ty"`, `lm_config=OfflineLMConfig(model="lm", scale=4.5`,
		`decoding_method="decoding", max_active_paths=5, hotwords_file="hotwords", hotwords_score=2.5, blank_penalty=3.5, rule_fsts="fsts", rule_fars="fars"`} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the library does not read %s", want)
		}
	}
	if t.Failed() {
		t.Log(string(out))
	}
}
