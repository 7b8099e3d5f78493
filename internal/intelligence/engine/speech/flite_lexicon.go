package speech

import (
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"

	"soniq/internal/intelligence/engine"
)

// fliteLexicon returns the pronunciation of words that are in no dictionary, with the lexicon and the letter-to-sound
// rules of flite. It is not safe for concurrent use.
type fliteLexicon struct {
	lexicon uintptr
	lookup  func(lexicon uintptr, word string, part, features uintptr) uintptr
	first   func(list uintptr) uintptr
	rest    func(list uintptr) uintptr
	text    func(value uintptr) string
	free    func(list uintptr)
}

// loadFliteLexicon opens the shared libraries. It returns nil if they are not installed.
func loadFliteLexicon() *fliteLexicon {
	open := func(name string) uintptr {
		h, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_GLOBAL)
		if err != nil {
			return 0
		}
		return h
	}
	flite, lexicon := open("libflite.so.1"), open("libflite_cmulex.so.1")
	if flite == 0 || lexicon == 0 {
		return nil
	}
	var l fliteLexicon
	var start func() uintptr
	for _, f := range []struct {
		fn   any
		lib  uintptr
		name string
	}{
		{&start, lexicon, "cmu_lex_init"}, {&l.lookup, flite, "lex_lookup"}, {&l.first, flite, "val_car"}, {&l.rest, flite, "val_cdr"},
		{&l.text, flite, "val_string"}, {&l.free, flite, "delete_val"},
	} {
		if _, err := purego.Dlsym(f.lib, f.name); err != nil {
			return nil
		}
		purego.RegisterLibFunc(f.fn, f.lib, f.name)
	}
	if l.lexicon = start(); l.lexicon == 0 {
		return nil
	}
	return &l
}

// phones returns the pronunciation of a lower-case word in phones of the CMU dictionary, "" if it is unknown.
func (l *fliteLexicon) phones(word string) string {
	if l == nil || word == "" {
		return ""
	}
	list := l.lookup(l.lexicon, word, 0, 0)
	if list == 0 {
		return ""
	}
	defer l.free(list)
	var out []string
	for at := list; at != 0; at = l.rest(at) {
		phone := strings.ToUpper(strings.TrimRight(l.text(l.first(at)), "0123456789"))
		if phone == "AX" { // flite's name for an AH without stress
			phone = "AH"
		}
		if !cmuPhones[phone] {
			return ""
		}
		out = append(out, phone)
	}
	return strings.Join(out, " ")
}

// cmuPhones is the set of phones of the dictionary and the acoustic model.
var cmuPhones = engine.WordSet("AA AE AH AO AW AY B CH D DH EH ER EY F G HH IH IY JH K L M N NG OW OY P R S SH T TH UH UW V W Y Z ZH")

// letterNames has the pronunciation of the name of each letter and digit.
var letterNames = map[rune]string{
	'a': "EY", 'b': "B IY", 'c': "S IY", 'd': "D IY", 'e': "IY", 'f': "EH F", 'g': "JH IY", 'h': "EY CH", 'i': "AY", 'j': "JH EY",
	'k': "K EY", 'l': "EH L", 'm': "EH M", 'n': "EH N", 'o': "OW", 'p': "P IY", 'q': "K Y UW", 'r': "AA R", 's': "EH S", 't': "T IY",
	'u': "Y UW", 'v': "V IY", 'w': "D AH B AH L Y UW", 'x': "EH K S", 'y': "W AY", 'z': "Z IY",
	'0': "Z IH R OW", '1': "W AH N", '2': "T UW", '3': "TH R IY", '4': "F AO R", '5': "F AY V", '6': "S IH K S", '7': "S EH V AH N",
	'8': "EY T", '9': "N AY N",
}

// goString copies a C string.
func goString(p uintptr) string {
	var b []byte
	for at := pointer(p); *(*byte)(at) != 0; at = unsafe.Add(at, 1) {
		b = append(b, *(*byte)(at))
	}
	return string(b)
}
