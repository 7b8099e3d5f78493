package speech

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/ebitengine/purego"

	"soniq/internal/intelligence/transcript"
)

// fliteHelp is the command that installs the builtin voices on Debian and distributions with the same package names.
const fliteHelp = "apt-get install libflite1"

// fliteVoices lists the builtin voices, the default first.
var fliteVoices = []string{"slt", "rms", "awb", "kal16"}

// fliteLibrary holds the C functions of flite that the worker calls. It is not safe for concurrent use.
type fliteLibrary struct {
	speak  func(text string, voice uintptr) unsafe.Pointer
	free   func(wave unsafe.Pointer)
	voices map[string]uintptr
}

// fliteWave is the C struct cst_wave on machines of 64 bits.
type fliteWave struct {
	kind     uintptr
	rate     int32
	samples  int32
	channels int32
	_        int32
	data     *int16
}

// loadFlite opens the shared libraries. If one is not found it returns a *transcript.MissingDependency.
func loadFlite() (*fliteLibrary, error) {
	var lib uintptr
	for _, name := range []string{"libflite.so.1", "libflite_cmulex.so.1", "libflite_usenglish.so.1"} {
		h, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_GLOBAL)
		if err != nil {
			return nil, &transcript.MissingDependency{Problem: name + " was not found", Remedy: fliteHelp}
		}
		if lib == 0 {
			lib = h
		}
	}
	l := &fliteLibrary{voices: map[string]uintptr{}}
	for _, f := range []struct {
		fn   any
		name string
	}{{&l.speak, "flite_text_to_wave"}, {&l.free, "delete_wave"}} {
		if _, err := purego.Dlsym(lib, f.name); err != nil {
			return nil, &transcript.MissingDependency{Problem: "the flite library has no function " + f.name, Remedy: fliteHelp}
		}
		purego.RegisterLibFunc(f.fn, lib, f.name)
	}
	var start func() int32
	purego.RegisterLibFunc(&start, lib, "flite_init")
	start()
	if _, err := l.openVoice(fliteVoices[0]); err != nil {
		return nil, err
	}
	return l, nil
}

// openVoice opens a voice and keeps it open for later texts.
func (l *fliteLibrary) openVoice(name string) (uintptr, error) {
	if v, open := l.voices[name]; open {
		return v, nil
	}
	if !slices.Contains(fliteVoices, name) {
		return 0, fmt.Errorf("flite has no voice %q", name)
	}
	file := "libflite_cmu_us_" + name + ".so.1"
	lib, err := purego.Dlopen(file, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return 0, &transcript.MissingDependency{Problem: file + " was not found", Remedy: fliteHelp}
	}
	if _, err := purego.Dlsym(lib, "register_cmu_us_"+name); err != nil {
		return 0, &transcript.MissingDependency{Problem: file + " has no voice", Remedy: fliteHelp}
	}
	var register func(folder uintptr) uintptr
	purego.RegisterLibFunc(&register, lib, "register_cmu_us_"+name)
	v := register(0)
	if v == 0 {
		return 0, &transcript.MissingDependency{Problem: "flite could not open the voice " + name, Remedy: fliteHelp}
	}
	l.voices[name] = v
	return v, nil
}

// synthesize speaks a text of plain ASCII.
func (l *fliteLibrary) synthesize(text, name string) (pcm []int16, rate int, err error) {
	v, err := l.openVoice(name)
	if err != nil {
		return nil, 0, err
	}
	p := l.speak(text, v)
	if p == nil {
		return nil, 0, fmt.Errorf("flite could not speak the text")
	}
	defer l.free(p)
	w := (*fliteWave)(p)
	if w.channels != 1 || w.samples <= 0 || w.data == nil {
		return nil, 0, fmt.Errorf("flite spoke nothing")
	}
	return slices.Clone(unsafe.Slice(w.data, w.samples)), int(w.rate), nil
}
