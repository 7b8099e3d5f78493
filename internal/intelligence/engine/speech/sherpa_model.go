package speech

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/text/language"

	"soniq/internal/intelligence/engine/speech/onnx"
	"soniq/internal/intelligence/transcript"
)

// sherpaModel describes the model in a folder: its family, its files by part, and the file of its tokens.
type sherpaModel struct {
	dir       string
	family    string
	parts     map[string]string // paths by part: encoder, decoder, joiner, model ...
	tokens    string
	languages []string // languages that can be configured; none if the model takes no language

	monolingual bool // a Whisper model for English only
}

// senseVoiceLanguages are the languages of all SenseVoice models.
var senseVoiceLanguages = []string{"zh", "en", "ja", "ko", "yue"}

// knownLanguages returns the languages of a model; none if they are not known. The folders of published models name
// them, as in sherpa-onnx-paraformer-zh.
func (m sherpaModel) knownLanguages() []string {
	switch {
	case len(m.languages) > 0:
		return m.languages
	case m.monolingual, m.family == "moonshine":
		return englishOnly
	case m.family == "sense-voice":
		return senseVoiceLanguages
	case m.family == "":
		return nil
	}
	return languagesInName(filepath.Base(m.dir))
}

// languagesInName returns the language codes of two letters in the name of the folder of a published model.
func languagesInName(name string) (all []string) {
	if !strings.HasPrefix(name, "sherpa-onnx-") {
		return nil
	}
	for _, part := range strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r < 'a' || r > 'z' }) {
		if tag, err := language.ParseBase(part); len(part) == 2 && err == nil && tag.String() == part {
			all = append(all, part)
		}
	}
	return all
}

// File names of the parts of models, in the order in which they are compared: "uncached_decode.onnx" is not a
// decoder.
var sherpaParts = []struct{ part, name string }{
	{"preprocessor", "preprocess"}, {"uncached", "uncached_decode"}, {"cached", "cached_decode"}, {"merged", "decoder_model_merged"},
	{"joiner", "joiner"}, {"encoder", "encode"}, {"decoder", "decode"},
}

// sherpaFamilies identifies the family by the parts that exist and by the prefix of model_type in the metadata of the
// first part; "" matches any.
var sherpaFamilies = []struct {
	family, parts, kind string
}{
	{"moonshine", "cached encoder preprocessor uncached", ""},
	{"moonshine-2", "encoder merged", ""},
	{"nemo-transducer", "decoder encoder joiner", "EncDec"},
	{"transducer", "decoder encoder joiner", ""},
	{"whisper", "decoder encoder", "whisper"},
	{"paraformer", "model", "paraformer"},
	{"nemo-ctc", "model", "EncDec"},
	{"zipformer-ctc", "model", "zipformer2_ctc"},
	{"wenet-ctc", "model", "wenet_ctc"},
	{"sense-voice", "model", "sense_voice_ctc"},
}

// streamingKeys are metadata keys of streaming models, which a different recogniser of the library reads.
var streamingKeys = []string{"decode_chunk_len", "chunk_shift", "cache_last_channel_dim1"}

// findSherpaModel inspects the files of a folder. If the model cannot be used it returns a
// *transcript.MissingDependency with the reason.
func findSherpaModel(dir string) (sherpaModel, error) {
	m := sherpaModel{dir: dir}
	lacks := func(format string, args ...any) (sherpaModel, error) {
		return m, &transcript.MissingDependency{Problem: fmt.Sprintf(format, args...),
			Remedy: "unpack one model of sherpa-onnx there: a transducer, Whisper, Paraformer, NeMo, Zipformer or WeNet CTC, SenseVoice or Moonshine one, not a streaming one"}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return lacks("the folder of the model cannot be read: %v", err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if m.parts, err = partsOf(names); err != nil {
		return lacks("%s: %v", dir, err)
	}
	if len(m.parts) == 0 {
		return lacks("there is no .onnx file in %s", dir)
	}
	if m.tokens = tokensOf(names); m.tokens == "" {
		return lacks("there is no tokens.txt in %s", dir)
	}
	m.tokens = filepath.Join(dir, m.tokens)
	have := make([]string, 0, len(m.parts))
	for part, name := range m.parts {
		m.parts[part] = filepath.Join(dir, name)
		have = append(have, part)
	}
	slices.Sort(have)
	about, err := m.metadata()
	if err != nil {
		return lacks("%v", err)
	}
	for _, key := range streamingKeys {
		if about[key] != "" {
			return lacks("the model in %s is a streaming one", dir)
		}
	}
	for _, f := range sherpaFamilies {
		if f.parts == strings.Join(have, " ") && strings.HasPrefix(about["model_type"], f.kind) {
			m.family = f.family
			m.monolingual = m.family == "whisper" && about["is_multilingual"] == "0"
			if m.family == "whisper" && about["is_multilingual"] == "1" {
				m.languages = strings.Split(about["all_language_codes"], ",")
			}
			return m, nil
		}
	}
	return lacks("the model in %s (%s, model_type %q) is of no family that is known", dir, strings.Join(have, " and "), about["model_type"])
}

// metadata returns the metadata of the first part of a model; nil if that is not an ONNX file.
func (m sherpaModel) metadata() (map[string]string, error) {
	for _, part := range []string{"encoder", "model"} {
		if path := m.parts[part]; strings.HasSuffix(path, ".onnx") {
			return onnx.Metadata(path)
		}
	}
	return nil, nil
}

// partsOf finds the files of a model's parts. If a part exists with full and with 8-bit weights it uses the 8-bit
// file, which is faster and needs less memory.
func partsOf(names []string) (map[string]string, error) {
	parts := map[string]string{}
	for _, name := range names {
		if !strings.HasSuffix(name, ".onnx") && !strings.HasSuffix(name, ".ort") || strings.HasPrefix(name, "silero_vad") {
			continue
		}
		part := "model"
		for _, p := range sherpaParts {
			if strings.Contains(name, p.name) {
				part = p.part
				break
			}
		}
		other, twice := parts[part]
		if twice && withoutPrecision(name) != withoutPrecision(other) {
			return nil, fmt.Errorf("%s and %s are parts of different models: keep one", other, name)
		}
		if !twice || strings.Contains(name, ".int8.") {
			parts[part] = name
		}
	}
	return parts, nil
}

// withoutPrecision returns a file name without the suffix for the precision of the weights.
func withoutPrecision(name string) string {
	for _, form := range []string{".int8", ".fp16", ".quant"} {
		name = strings.ReplaceAll(name, form, "")
	}
	return name
}

// tokensOf returns the name of the tokens file: tokens.txt, possibly with a prefix, as with Whisper.
func tokensOf(names []string) string {
	for _, name := range names {
		if strings.HasSuffix(name, "tokens.txt") {
			return name
		}
	}
	return ""
}

// name returns the name of the model in transcripts: its folder and its family.
func (m sherpaModel) name() string { return filepath.Base(m.dir) + " (" + m.family + ")" }

// config returns the C structure for the library. language is one of the model's languages, or "".
func (m sherpaModel) config(c *cStrings, threads int, language string) *sherpaConfig {
	part := func(name string) cString { return c.text(m.parts[name]) }
	s := &sherpaConfig{SampleRate: sherpaRate, FeatureDim: sherpaFeatures, Decoding: c.text("greedy_search"), MaxActivePaths: 4}
	s.Model.Tokens, s.Model.Threads, s.Model.Provider = c.text(m.tokens), int32(threads), c.text("cpu")
	switch x := &s.Model; m.family {
	case "moonshine":
		x.Moonshine.Preprocessor, x.Moonshine.Encoder = part("preprocessor"), part("encoder")
		x.Moonshine.Uncached, x.Moonshine.Cached = part("uncached"), part("cached")
	case "moonshine-2":
		x.Moonshine.Encoder, x.Moonshine.Merged = part("encoder"), part("merged")
	case "transducer", "nemo-transducer":
		x.Transducer.Encoder, x.Transducer.Decoder, x.Transducer.Joiner = part("encoder"), part("decoder"), part("joiner")
		x.Type = c.text(strings.ReplaceAll(m.family, "-", "_"))
	case "whisper":
		x.Whisper.Encoder, x.Whisper.Decoder = part("encoder"), part("decoder")
		x.Whisper.Language, x.Whisper.Task, x.Whisper.TokenTimestamps = c.text(language), c.text("transcribe"), 1
	case "paraformer":
		x.Paraformer = part("model")
	case "nemo-ctc":
		x.NeMoCTC = part("model")
	case "zipformer-ctc":
		x.ZipformerCTC = part("model")
	case "wenet-ctc":
		x.WeNetCTC = part("model")
	case "sense-voice":
		x.SenseVoice.Model, x.SenseVoice.Normalise = part("model"), 1
	}
	return s
}
