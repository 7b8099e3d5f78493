package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"soniq/internal/intelligence/transcript"
)

// sherpaModel is a model that somebody put into a folder: its family, its files by their part, and the file of its tokens.
type sherpaModel struct {
	dir       string
	family    string
	parts     map[string]string // paths by part: encoder, decoder, joiner, model ...
	tokens    string
	languages []string // that it can be told to expect; none where it cannot be told
}

// The parts of models, in the order in which names are looked at: "uncached_decode.onnx" is no decoder.
var sherpaParts = []struct{ part, name string }{
	{"preprocessor", "preprocess"}, {"uncached", "uncached_decode"}, {"cached", "cached_decode"}, {"merged", "decoder_model_merged"},
	{"joiner", "joiner"}, {"encoder", "encode"}, {"decoder", "decode"},
}

// sherpaFamilies are known by the parts that are there and by what the first part says in its metadata as model_type; "" is any.
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

// streamingKeys stand in the metadata of models that are made to be fed bit by bit: another recogniser of the library reads those.
var streamingKeys = []string{"decode_chunk_len", "chunk_shift", "cache_last_channel_dim1"}

// findSherpaModel looks at the files of a folder. What cannot be used is a *transcript.Missing that says what is missing.
func findSherpaModel(dir string) (sherpaModel, error) {
	m := sherpaModel{dir: dir}
	lacks := func(format string, args ...any) (sherpaModel, error) {
		return m, &transcript.Missing{What: fmt.Sprintf(format, args...),
			Help: "unpack one model of sherpa-onnx there: a transducer, Whisper, Paraformer, NeMo, Zipformer or WeNet CTC, SenseVoice or Moonshine one, not a streaming one"}
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
			if m.family == "whisper" && about["is_multilingual"] == "1" {
				m.languages = strings.Split(about["all_language_codes"], ",")
			}
			return m, nil
		}
	}
	return lacks("the model in %s (%s, model_type %q) is of no family that is known", dir, strings.Join(have, " and "), about["model_type"])
}

// metadata is what the first part of a model says about itself; nothing where it is in another format than ONNX.
func (m sherpaModel) metadata() (map[string]string, error) {
	for _, part := range []string{"encoder", "model"} {
		if path := m.parts[part]; strings.HasSuffix(path, ".onnx") {
			return onnxMetadata(path)
		}
	}
	return nil, nil
}

// partsOf finds the files of a model's parts. Where a part is there with full and with 8-bit weights, the latter are
// taken: they are faster and need less memory.
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
		if twice && full(name) != full(other) {
			return nil, fmt.Errorf("%s and %s are parts of different models: keep one", other, name)
		}
		if !twice || strings.Contains(name, ".int8.") {
			parts[part] = name
		}
	}
	return parts, nil
}

// full is the name of a file without what tells how its weights are written.
func full(name string) string {
	for _, form := range []string{".int8", ".fp16", ".quant"} {
		name = strings.ReplaceAll(name, form, "")
	}
	return name
}

// tokensOf is the name of the file of tokens: tokens.txt, or with something before it, as Whisper's have.
func tokensOf(names []string) string {
	for _, name := range names {
		if strings.HasSuffix(name, "tokens.txt") {
			return name
		}
	}
	return ""
}

// name is what the model is called on transcripts: its folder, and its family.
func (m sherpaModel) name() string { return filepath.Base(m.dir) + " (" + m.family + ")" }

// config fills in the structure for the library. language is one of those the model can be told, or "".
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
