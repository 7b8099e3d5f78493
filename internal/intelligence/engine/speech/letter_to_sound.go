package speech

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
	"unicode"
)

// letterToSoundData is the pronunciation of English letters, learnt from the CMU dictionary by cmd/trainmodels: the
// magic "sounds1\n", the number of sounds as a byte, the sounds as phones separated by spaces, each ended by a
// newline, the number of nodes before each letter's tree (26 uint16, little-endian) and the nodes of three bytes. A
// node asks whether the letter at an offset of -4 to 4 (except 0) is a certain one: question offset*27+letter (26
// means none), and the index of the node to continue at if it is not, counted from the beginning of the tree. If it
// is, the next node follows. A node whose question is 255 is a leaf: its second byte is the sound.
//
//go:embed sounds.bin
var letterToSoundData string

// letterToSoundMagic begins a file of sounds.
const letterToSoundMagic = "sounds1\n"

// LetterToSound derives the pronunciation of words from their spelling (grapheme to phoneme). It is safe for
// concurrent use.
type LetterToSound struct {
	sounds [][]phoneme
	first  [27]int // node
	nodes  string
}

// phoneme is an index in phoneNames.
type phoneme uint8

// phoneNames lists the phones of the CMU dictionary, in their order.
var phoneNames = strings.Fields("AA AE AH AO AW AY B CH D DH EH ER EY F G HH IH IY JH K L M N NG OW OY P R S SH T TH UH UW V W Y Z ZH")

var phoneOf = func() map[string]phoneme {
	m := map[string]phoneme{}
	for i, name := range phoneNames {
		m[name] = phoneme(i)
	}
	return m
}()

// NewLetterToSound returns the rules that are embedded in the binary. They are read once.
var NewLetterToSound = sync.OnceValue(func() *LetterToSound {
	s, err := ReadLetterToSound(letterToSoundData)
	if err != nil {
		panic(err) // the embedded file is damaged, which the tests detect
	}
	return s
})

// ReadLetterToSound reads rules in the format of sounds.bin.
func ReadLetterToSound(data string) (*LetterToSound, error) {
	rest, ok := strings.CutPrefix(data, letterToSoundMagic)
	if !ok || rest == "" {
		return nil, fmt.Errorf("sounds of %d bytes do not begin as such", len(data))
	}
	s := &LetterToSound{}
	n := int(rest[0])
	rest = rest[1:]
	for range n {
		line, after, _ := strings.Cut(rest, "\n")
		phones, ok := parsePhones(line)
		if !ok {
			return nil, fmt.Errorf("%q are no phones", line)
		}
		s.sounds, rest = append(s.sounds, phones), after
	}
	if len(rest) < 52 || (len(rest)-52)%3 != 0 {
		return nil, fmt.Errorf("sounds have nodes of %d bytes", len(rest))
	}
	for i := range 26 {
		s.first[i] = int(binary.LittleEndian.Uint16([]byte(rest[2*i:])))
	}
	s.nodes = rest[52:]
	s.first[26] = len(s.nodes) / 3
	return s, s.check()
}

// check reports a question that leads out of its tree or back.
func (s *LetterToSound) check() error {
	for letter := range 26 {
		from, to := s.first[letter], s.first[letter+1]
		if from >= to || to > len(s.nodes)/3 {
			return fmt.Errorf("the letter %c has nodes %d to %d", 'a'+letter, from, to)
		}
		for at := from; at < to; at++ {
			q, value := s.node(at)
			if q == leafNode && value&0xff < len(s.sounds) {
				continue
			}
			if q == leafNode || q >= 9*27 || from+value <= at || from+value >= to || at+1 >= to {
				return fmt.Errorf("node %d of the letter %c leads nowhere", at-from, 'a'+letter)
			}
		}
	}
	return nil
}

// leafNode is the question of a leaf.
const leafNode = 255

func (s *LetterToSound) node(at int) (question, value int) {
	return int(s.nodes[3*at]), int(s.nodes[3*at+1]) | int(s.nodes[3*at+2])<<8
}

// parsePhones parses phones of the CMU dictionary.
func parsePhones(text string) (phones []phoneme, ok bool) {
	for _, name := range strings.Fields(text) {
		p, known := phoneOf[name]
		if !known {
			return nil, false
		}
		phones = append(phones, p)
	}
	return phones, true
}

// Phones returns the most likely English pronunciation of a lower-case word, in phones of the CMU dictionary:
// "zyntrix" is "Z IH N T R IH K S". Characters other than a to z are ignored.
func (s *LetterToSound) Phones(word string) string {
	var names []string
	for _, p := range s.pronounce(word) {
		names = append(names, phoneNames[p])
	}
	return strings.Join(names, " ")
}

// pronounce returns the phones of a lower-case word.
func (s *LetterToSound) pronounce(word string) (phones []phoneme) {
	letters := strings.Map(func(r rune) rune {
		if r < 'a' || r > 'z' {
			return -1
		}
		return r
	}, word)
	for i := range len(letters) {
		for _, p := range s.sounds[s.soundAt(letters, i)] {
			if n := len(phones); n == 0 || phones[n-1] != p || isVowel(p) {
				phones = append(phones, p)
			}
		}
	}
	return phones
}

// soundAt returns the sound of a letter of a word.
func (s *LetterToSound) soundAt(letters string, i int) int {
	from := s.first[letters[i]-'a']
	for at := from; ; {
		q, value := s.node(at)
		if q == leafNode {
			return value & 0xff
		}
		k, there := i+q/27-4, 26
		if k >= 0 && k < len(letters) {
			there = int(letters[k] - 'a')
		}
		if there == q%27 {
			at++
		} else {
			at = from + value
		}
	}
}

// pronounceWritten returns the phones of a word in its written form: abbreviations are spelled, digits are read one
// by one, and parts between capitals and hyphens are pronounced separately.
func (s *LetterToSound) pronounceWritten(word string) (phones []phoneme) {
	letters := folded(word)
	if isAcronym(letters) && (len(letters) < 4 || !strings.ContainsAny(letters, "AEIOUY")) {
		phones, _ = parsePhones(spelledPhones(letters))
		return phones
	}
	for _, part := range splitWordParts(letters) {
		phones = append(phones, s.pronounce(part)...)
	}
	return phones
}

// hasDigit reports whether a text contains a digit.
func hasDigit(text string) bool { return strings.ContainsFunc(text, unicode.IsDigit) }
