// Package notice has the standard texts that announce a recording.
package notice

import "strings"

// Spoken is a text and its language. An empty language is the engine's default.
type Spoken struct{ Text, Language string }

const english = "This call is recorded."

// standard has the standard text by language.
var standard = map[string]string{
	"cs": "Tento hovor je nahráván.",
	"da": "Denne samtale optages.",
	"de": "Dieses Gespräch wird aufgezeichnet.",
	"es": "Esta llamada se está grabando.",
	"fi": "Tämä puhelu nauhoitetaan.",
	"fr": "Cet appel est enregistré.",
	"it": "Questa chiamata viene registrata.",
	"nl": "Dit gesprek wordt opgenomen.",
	"no": "Denne samtalen blir tatt opp.",
	"pl": "Ta rozmowa jest nagrywana.",
	"pt": "Esta chamada está a ser gravada.",
	"sv": "Det här samtalet spelas in.",
}

// Texts returns the texts of a notice in the order in which to try them: the own text, the standard text of the
// language, the English text.
func Texts(own, language string) (all []Spoken) {
	base, _, _ := strings.Cut(strings.ToLower(language), "-")
	spoken := language
	if base == "en" {
		spoken = ""
	}
	if own != "" {
		all = append(all, Spoken{own, spoken})
	}
	if text, ok := standard[base]; ok {
		all = append(all, Spoken{text, spoken})
	}
	return append(all, Spoken{english, ""})
}
