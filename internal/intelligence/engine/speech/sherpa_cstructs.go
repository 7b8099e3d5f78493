package speech

import (
	"runtime"
	"unsafe"
)

// sherpaVersions lists the releases of sherpa-onnx whose C structures match those below. Another release may have
// moved fields; the library would then read invalid addresses.
var sherpaVersions = []string{"1.13.5", "1.13.6", "1.13.7", "1.13.8"}

// cString is the address of a C string, 0 for none.
type cString uintptr

// sherpaConfig is SherpaOnnxOfflineRecognizerConfig. Go lays its fields out as C does on 64-bit machines.
type sherpaConfig struct {
	SampleRate, FeatureDim int32
	Model                  sherpaModelConfig
	LanguageModel          cString
	LanguageScale          float32
	Decoding               cString
	MaxActivePaths         int32
	HotwordsFile           cString
	HotwordsScore          float32
	RuleFSTs, RuleFARs     cString
	BlankPenalty           float32
	Homophones             [3]cString
	_                      [8]uintptr // decoding graphs, which are not used
}

// sherpaModelConfig is SherpaOnnxOfflineModelConfig. One of its families is filled in.
type sherpaModelConfig struct {
	Transducer struct{ Encoder, Decoder, Joiner cString }
	Paraformer cString
	NeMoCTC    cString
	Whisper    struct {
		Encoder, Decoder, Language, Task             cString
		TailPaddings, TokenTimestamps, SegmentsTimed int32
	}
	TDNN       cString
	Tokens     cString
	Threads    int32
	Debug      int32
	Provider   cString
	Type       cString
	Unit       cString
	BPEVocab   cString
	TeleSpeech cString
	SenseVoice struct {
		Model, Language cString
		Normalise       int32
	}
	Moonshine    struct{ Preprocessor, Encoder, Uncached, Cached, Merged cString }
	FireRed      [2]cString
	Dolphin      cString
	ZipformerCTC cString
	Canary       struct {
		Files     [4]cString
		Punctuate int32
	}
	WeNetCTC    cString
	Omnilingual cString
	MedASR      cString
	FunASR      struct {
		Files       [6]cString
		MaxTokens   int32
		Temperature float32
		TopP        float32
		Seed        int32
		Language    cString
		Normalise   int32
		Hotwords    cString
	}
	FireRedCTC cString
	Qwen3      struct {
		Files             [4]cString
		MaxLength         int32
		MaxTokens         int32
		Temperature, TopP float32
		Seed              int32
		Hotwords          cString
	}
	Cohere struct {
		Files                [3]cString
		Punctuate, Normalise int32
	}
}

// cStrings pins C strings in memory until release is called.
type cStrings struct{ pin runtime.Pinner }

// text returns the address of a string; 0 for an empty one.
func (c *cStrings) text(s string) cString {
	if s == "" {
		return 0
	}
	b := append([]byte(s), 0)
	c.pin.Pin(&b[0])
	return cString(uintptr(unsafe.Pointer(&b[0])))
}

// release unpins the strings.
func (c *cStrings) release() { c.pin.Unpin() }
