package engine

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
	"unicode"
)

// soundsData is how English letters are said, learnt from the CMU dictionary by cmd/trainmodels: the mark "sounds1\n", the number of sounds as a byte,
// the sounds as phones with spaces between, each ended by a newline, the number of nodes before each letter's tree (26 uint16, little-endian) and
// the nodes of three bytes. A node asks whether the letter at an offset of -4 to 4 (but 0) is a certain one: question offset*27+letter, 26 standing
// for none, and the number of the node where it is not, counted from the tree's beginning; where it is, the next one goes on. A node whose question
// is 255 is the end: its second byte is the sound.
//
//go:embed sounds.bin
var soundsData string

// soundsMark is how such a file begins.
const soundsMark = "sounds1\n"

// A Sounding finds out how words are said by their letters. It is safe for concurrent use.
type Sounding struct {
	sounds [][]phoneme
	first  [27]int // node
	nodes  string
}

// phoneme is one of phoneNames.
type phoneme uint8

// phoneNames are the phones of the CMU dictionary, in their order.
var phoneNames = strings.Fields("AA AE AH AO AW AY B CH D DH EH ER EY F G HH IH IY JH K L M N NG OW OY P R S SH T TH UH UW V W Y Z ZH")

var phoneOf = func() map[string]phoneme {
	m := map[string]phoneme{}
	for i, name := range phoneNames {
		m[name] = phoneme(i)
	}
	return m
}()

// NewSounding opens the one that is part of the binary.
var NewSounding = sync.OnceValue(func() *Sounding {
	s, err := ReadSounding(soundsData)
	if err != nil {
		panic(err) // the binary was built from a broken file, which the tests show
	}
	return s
})

// ReadSounding opens a file in the form of sounds.bin.
func ReadSounding(data string) (*Sounding, error) {
	rest, ok := strings.CutPrefix(data, soundsMark)
	if !ok || rest == "" {
		return nil, fmt.Errorf("sounds of %d bytes do not begin as such", len(data))
	}
	s := &Sounding{}
	n := int(rest[0])
	rest = rest[1:]
	for range n {
		line, after, _ := strings.Cut(rest, "\n")
		phones, ok := phonesIn(line)
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

// check makes sure that no question leads out of its tree or back.
func (s *Sounding) check() error {
	for letter := range 26 {
		from, to := s.first[letter], s.first[letter+1]
		if from >= to || to > len(s.nodes)/3 {
			return fmt.Errorf("the letter %c has nodes %d to %d", 'a'+letter, from, to)
		}
		for at := from; at < to; at++ {
			q, value := s.node(at)
			if q == endNode && value&0xff < len(s.sounds) {
				continue
			}
			if q == endNode || q >= 9*27 || from+value <= at || from+value >= to || at+1 >= to {
				return fmt.Errorf("node %d of the letter %c leads nowhere", at-from, 'a'+letter)
			}
		}
	}
	return nil
}

// endNode is the question of a node that asks nothing.
const endNode = 255

func (s *Sounding) node(at int) (question, value int) {
	return int(s.nodes[3*at]), int(s.nodes[3*at+1]) | int(s.nodes[3*at+2])<<8
}

// phonesIn reads phones of the CMU dictionary.
func phonesIn(text string) (phones []phoneme, ok bool) {
	for _, name := range strings.Fields(text) {
		p, known := phoneOf[name]
		if !known {
			return nil, false
		}
		phones = append(phones, p)
	}
	return phones, true
}

// Phones are how a word of small letters is most likely said in English, as in the CMU dictionary: "zyntrix" is "Z IH N T R IH K S". Anything but
// the letters a to z is passed over.
func (s *Sounding) Phones(word string) string {
	var names []string
	for _, p := range s.say(word) {
		names = append(names, phoneNames[p])
	}
	return strings.Join(names, " ")
}

// say gives the phones of a word of small letters.
func (s *Sounding) say(word string) (phones []phoneme) {
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

// soundAt is the sound of a letter of a word.
func (s *Sounding) soundAt(letters string, i int) int {
	from := s.first[letters[i]-'a']
	for at := from; ; {
		q, value := s.node(at)
		if q == endNode {
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

// sayWritten gives the phones of a word as it is written: abbreviations are spelled, figures are said digit by digit, and parts between capitals
// and hyphens are said on their own.
func (s *Sounding) sayWritten(word string) (phones []phoneme) {
	letters := folded(word)
	if spelledOut(letters) && (len(letters) < 4 || !strings.ContainsAny(letters, "AEIOUY")) {
		phones, _ = phonesIn(spelled(letters))
		return phones
	}
	for _, part := range humps(letters) {
		phones = append(phones, s.say(part)...)
	}
	return phones
}

// hasDigit tells whether a text has a figure.
func hasDigit(text string) bool { return strings.ContainsFunc(text, unicode.IsDigit) }
