package speech

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"

	"soniq/internal/intelligence/transcript"
)

// sphinxHelp has the commands that install a recogniser: the better one, and this one on Debian and distributions
// with the same package names.
const sphinxHelp = "soniq speech-model install, or apt-get install libpocketsphinx3 pocketsphinx-en-us for a poorer one"

// sphinxLibrary holds the C functions of pocketsphinx that the worker calls. Handles are C pointers.
type sphinxLibrary struct {
	args       func() uintptr
	parse      func(in, defs uintptr, argc int32, argv unsafe.Pointer, strict int32) uintptr
	open       func(config uintptr) uintptr
	frontEnd   func(ps uintptr) uintptr
	logmath    func(ps uintptr) uintptr
	startUtt   func(ps uintptr) int32
	endUtt     func(ps uintptr) int32
	processRaw func(ps uintptr, pcm unsafe.Pointer, n uintptr, noSearch, full int32) int32
	processCep func(ps, cep uintptr, n, noSearch, full int32) int32
	segments   func(ps uintptr) uintptr
	segNext    func(seg uintptr) uintptr
	segWord    func(seg uintptr) string
	segFrames  func(seg uintptr, start, end unsafe.Pointer)
	segProb    func(seg, ascr, lscr, lback uintptr) int32
	exp        func(logmath uintptr, p int32) float64
	setLog     func(file uintptr)
	setGrammar func(ps uintptr, name, grammar string) int32
	setSearch  func(ps uintptr, name string) int32
	dropSearch func(ps uintptr, name string) int32
	search     func(ps uintptr) string
	lookup     func(ps uintptr, word string) uintptr
	startFE    func(fe uintptr)
	startFEUtt func(fe uintptr) int32
	features   func(fe uintptr, pcm unsafe.Pointer, n uintptr, cep, frames unsafe.Pointer) int32
	free2D     func(block uintptr)
	free       func(block uintptr)
	close      func(ps uintptr) int32
	config     func(ps uintptr) uintptr
	addWord    func(ps uintptr, word, phones string, update int32) int32

	// Language models. They are reference-counted: every model returned must be freed, and searches and mixtures hold
	// references too.
	modelOf     func(ps uintptr, search string) uintptr
	setModel    func(ps uintptr, search string, lm uintptr) int32
	readModel   func(config uintptr, file string, kind int32, logmath uintptr) uintptr
	retainModel func(lm uintptr) uintptr
	freeModel   func(lm uintptr) int32
	setOfModels func(config uintptr, models, names, weights unsafe.Pointer, n int32) uintptr
	partOfModel func(set, name uintptr) uintptr
	wordID      func(lm uintptr, word string) int32
	unknownID   func(lm uintptr) int32
	probability func(lm uintptr, word int32, before uintptr, n int32, used unsafe.Pointer) int32
}

// loadSphinx opens the shared libraries. If one is not found it returns a *transcript.MissingDependency.
func loadSphinx() (*sphinxLibrary, error) {
	ps, err := openLibrary("libpocketsphinx.so.3")
	if err != nil {
		return nil, err
	}
	base, err := openLibrary("libsphinxbase.so.3")
	if err != nil {
		return nil, err
	}
	var l sphinxLibrary
	for _, f := range []struct {
		fn   any
		lib  uintptr
		name string
	}{
		{&l.args, ps, "ps_args"}, {&l.open, ps, "ps_init"}, {&l.frontEnd, ps, "ps_get_fe"},
		{&l.logmath, ps, "ps_get_logmath"}, {&l.startUtt, ps, "ps_start_utt"}, {&l.endUtt, ps, "ps_end_utt"},
		{&l.processRaw, ps, "ps_process_raw"}, {&l.processCep, ps, "ps_process_cep"},
		{&l.segments, ps, "ps_seg_iter"}, {&l.segNext, ps, "ps_seg_next"}, {&l.segWord, ps, "ps_seg_word"},
		{&l.segFrames, ps, "ps_seg_frames"}, {&l.segProb, ps, "ps_seg_prob"},
		{&l.setGrammar, ps, "ps_set_jsgf_string"}, {&l.setSearch, ps, "ps_set_search"}, {&l.dropSearch, ps, "ps_unset_search"},
		{&l.search, ps, "ps_get_search"}, {&l.lookup, ps, "ps_lookup_word"},
		{&l.parse, base, "cmd_ln_parse_r"}, {&l.exp, base, "logmath_exp"}, {&l.setLog, base, "err_set_logfp"},
		{&l.startFE, base, "fe_start_stream"}, {&l.startFEUtt, base, "fe_start_utt"},
		{&l.features, base, "fe_process_utt"}, {&l.free2D, base, "ckd_free_2d"}, {&l.free, base, "ckd_free"},
		{&l.close, ps, "ps_free"}, {&l.config, ps, "ps_get_config"}, {&l.addWord, ps, "ps_add_word"},
		{&l.modelOf, ps, "ps_get_lm"}, {&l.setModel, ps, "ps_set_lm"}, {&l.readModel, base, "ngram_model_read"},
		{&l.retainModel, base, "ngram_model_retain"}, {&l.freeModel, base, "ngram_model_free"},
		{&l.setOfModels, base, "ngram_model_set_init"}, {&l.partOfModel, base, "ngram_model_set_lookup"},
		{&l.wordID, base, "ngram_wid"}, {&l.unknownID, base, "ngram_unknown_wid"},
		{&l.probability, base, "ngram_ng_prob"},
	} {
		if _, err := purego.Dlsym(f.lib, f.name); err != nil {
			return nil, &transcript.MissingDependency{Problem: "the pocketsphinx library has no function " + f.name, Remedy: sphinxHelp}
		}
		purego.RegisterLibFunc(f.fn, f.lib, f.name)
	}
	return &l, nil
}

func openLibrary(name string) (uintptr, error) {
	h, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return 0, &transcript.MissingDependency{Problem: name + " was not found", Remedy: sphinxHelp}
	}
	return h, nil
}

// modelDirs are the folders in which distributions install the English model.
var modelDirs = []string{"/usr/share/pocketsphinx/model/en-us", "/usr/local/share/pocketsphinx/model/en-us"}

// findModel returns the folder of the English model.
func findModel() (string, error) {
	for _, dir := range modelDirs {
		if _, err := os.Stat(filepath.Join(dir, "en-us.lm.bin")); err == nil {
			return dir, nil
		}
	}
	return "", &transcript.MissingDependency{Problem: "the English speech model was not found in " + modelDirs[0], Remedy: sphinxHelp}
}

// openDecoder opens a decoder with the model in a folder.
func (l *sphinxLibrary) openDecoder(model string) (uintptr, error) {
	l.setLog(0)
	// Our own detector finds the segments; pocketsphinx must not drop frames, because word times would drift.
	args := []string{"soniq", "-hmm", model + "/en-us", "-lm", model + "/en-us.lm.bin",
		"-dict", model + "/cmudict-en-us.dict", "-remove_silence", "no",
		// More Gaussians per frame than the default of four: one word error in twenty fewer for a tenth more time.
		"-topn", "8"}
	pointers := make([]unsafe.Pointer, len(args))
	var pin runtime.Pinner
	defer pin.Unpin()
	for i, a := range args {
		b := append([]byte(a), 0)
		pin.Pin(&b[0])
		pointers[i] = unsafe.Pointer(&b[0])
	}
	pin.Pin(&pointers[0])
	config := l.parse(0, l.args(), int32(len(args)), unsafe.Pointer(&pointers[0]), 0)
	if config == 0 {
		return 0, fmt.Errorf("pocketsphinx refused its options")
	}
	ps := l.open(config)
	if ps == 0 {
		return 0, &transcript.MissingDependency{Problem: "pocketsphinx could not read the model in " + model, Remedy: sphinxHelp}
	}
	return ps, nil
}

// mixModels returns a mixture of two language models: a word has the higher of its two probabilities. It returns 0 if
// the models do not fit.
func (l *sphinxLibrary) mixModels(ps, a, b uintptr) uintptr {
	models, weights := [2]uintptr{a, b}, [2]float32{1, 1}
	names := [2]unsafe.Pointer{}
	var pin runtime.Pinner
	defer pin.Unpin()
	for i, name := range []string{"language", "terms"} {
		b := append([]byte(name), 0)
		pin.Pin(&b[0])
		names[i] = unsafe.Pointer(&b[0])
	}
	return l.setOfModels(l.config(ps), unsafe.Pointer(&models), unsafe.Pointer(&names), unsafe.Pointer(&weights), int32(len(models)))
}
