package strictjson

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// WithoutDamaged returns a document with null instead of texts that are not Unicode, which decoders would change. Use it
// for answers of other systems whose remaining texts are wanted. Names of members are not changed.
func WithoutDamaged(document []byte) []byte {
	return ReplaceDamaged(document, func([]byte) []byte { return []byte("null") })
}

// ShortenDamaged returns a document without the parts of its texts that are not valid Unicode. Use it for generated text.
func ShortenDamaged(document []byte) []byte {
	return ReplaceDamaged(document, func(raw []byte) []byte {
		var text string
		_ = json.Unmarshal(raw, &text) // part of a valid document
		short, _ := json.Marshal(strings.ReplaceAll(text, string(utf8.RuneError), ""))
		return short
	})
}

// ReplaceDamaged returns a document in which other JSON takes the place of texts that are not Unicode. with gets such a
// text with its quotes and escapes.
func ReplaceDamaged(document []byte, with func(raw []byte) []byte) []byte {
	if utf8.Valid(document) && !bytes.Contains(document, []byte(`\ud`)) && !bytes.Contains(document, []byte(`\uD`)) ||
		!json.Valid(document) {
		return document
	}
	s := scanner{text: document}
	s.value()
	var out []byte
	end := 0
	for _, d := range s.damaged {
		out = append(append(out, document[end:d.from]...), with(document[d.from:d.to])...)
		end = d.to
	}
	return append(out, document[end:]...)
}

// span is a part of a document.
type span struct{ from, to int }
