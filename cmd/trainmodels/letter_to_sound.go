package main

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
)

// dictionaryEntry is a word of the dictionary and its pronunciation.
type dictionaryEntry struct {
	letters string
	phones  []string
}

var entryLine = regexp.MustCompile(`^([a-z]{2,20}) ([A-Z ]+)$`)

// readDictionary reads the words of a dictionary in CMU's format that consist of letters only, each with its first
// pronunciation.
func readDictionary(file string) (all []dictionaryEntry, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read dictionary: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if m := entryLine.FindStringSubmatch(lines.Text()); m != nil {
			all = append(all, dictionaryEntry{m[1], strings.Fields(m[2])})
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read dictionary: %w", err)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no words", file)
	}
	return all, nil
}

const (
	maxPhonesPerLetter = 2  // maximum of phones per letter
	alignmentRounds    = 8  // iterations of the alignment of letters with phones
	minOccurrences     = 40 // minimum of occurrences of a sound for it to be kept
	maxSounds          = 250
)

// letterSound is a letter with a sound.
type letterSound struct {
	letter byte
	sound  string
}

// alignSounds determines which phones each letter of the words produces, by expectation maximisation.
func alignSounds(all []dictionaryEntry) (sounds [][]string) {
	chance := map[letterSound]float64{}
	total := [256]float64{}
	p := func(letter byte, sound string) float64 {
		if total[letter] == 0 {
			return 0.1 * math.Pow(0.05, float64(strings.Count(sound, " "))) // initial value
		}
		return (chance[letterSound{letter, sound}] + 1e-4) / (total[letter] + 1)
	}
	for range alignmentRounds {
		next, sum := map[letterSound]float64{}, [256]float64{}
		for _, e := range all {
			e.expect(p, func(letter byte, sound string, weight float64) {
				next[letterSound{letter, sound}] += weight
				sum[letter] += weight
			})
		}
		chance, total = next, sum
	}
	for k, v := range chance {
		if v < minOccurrences {
			chance[k] = 0
		}
	}
	for _, e := range all {
		sounds = append(sounds, e.best(p))
	}
	return sounds
}

// soundFrom returns n phones from an index on; "" for none.
func (e dictionaryEntry) soundFrom(at, n int) string { return strings.Join(e.phones[at:at+n], " ") }

// expect reports the probability of each sound of each letter (forward-backward algorithm).
func (e dictionaryEntry) expect(p func(byte, string) float64, tell func(byte, string, float64)) {
	n, m := len(e.letters), len(e.phones)
	grid := func() [][]float64 {
		g := make([][]float64, n+1)
		for i := range g {
			g[i] = make([]float64, m+1)
		}
		return g
	}
	forward, backward := grid(), grid()
	forward[0][0], backward[n][m] = 1, 1
	step := func(do func(i, j, k int, chance float64)) func(i, j int) {
		return func(i, j int) {
			for k := 0; k <= maxPhonesPerLetter && j+k <= m; k++ {
				do(i, j, k, p(e.letters[i], e.soundFrom(j, k)))
			}
		}
	}
	ahead := step(func(i, j, k int, chance float64) { forward[i+1][j+k] += forward[i][j] * chance })
	back := step(func(i, j, k int, chance float64) { backward[i][j] += backward[i+1][j+k] * chance })
	for i := range n {
		for j := range m + 1 {
			ahead(i, j)
		}
	}
	if forward[n][m] == 0 {
		return
	}
	for i := n - 1; i >= 0; i-- {
		for j := range m + 1 {
			back(i, j)
		}
	}
	count := step(func(i, j, k int, chance float64) {
		if w := forward[i][j] * chance * backward[i+1][j+k] / forward[n][m]; w > 0 {
			tell(e.letters[i], e.soundFrom(j, k), w)
		}
	})
	for i := range n {
		for j := range m + 1 {
			count(i, j)
		}
	}
}

// best returns the most probable sound of each letter; nil if there is none.
func (e dictionaryEntry) best(p func(byte, string) float64) []string {
	n, m := len(e.letters), len(e.phones)
	score := make([][]float64, n+1)
	from := make([][]int, n+1)
	for i := range score {
		score[i], from[i] = make([]float64, m+1), make([]int, m+1)
	}
	score[0][0] = 1
	for i := range n {
		for j := range m + 1 {
			for k := 0; k <= maxPhonesPerLetter && j+k <= m; k++ {
				if v := score[i][j] * p(e.letters[i], e.soundFrom(j, k)); v > score[i+1][j+k] {
					score[i+1][j+k], from[i+1][j+k] = v, k
				}
			}
		}
	}
	if score[n][m] == 0 {
		return nil
	}
	sounds := make([]string, n)
	for i, j := n, m; i > 0; i-- {
		k := from[i][j]
		sounds[i-1] = e.soundFrom(j-k, k)
		j -= k
	}
	return sounds
}

// buildSounds builds sounds.bin.
func buildSounds(file string, least int) ([]byte, error) {
	all, err := readDictionary(file)
	if err != nil {
		return nil, err
	}
	number, names, samples := soundSamples(all, alignSounds(all))
	b := []byte("sounds1\n")
	b = append(b, byte(len(names)))
	for _, name := range names {
		b = append(append(b, name...), '\n')
	}
	var nodes []byte
	for letter := range 26 {
		b = binary.LittleEndian.AppendUint16(b, uint16(len(nodes)/3))
		g := treeBuilder{minSamples: least, sounds: number}
		g.grow(samples[letter])
		nodes = append(nodes, g.nodes...)
	}
	if len(nodes)/3 > math.MaxUint16 {
		return nil, fmt.Errorf("%d nodes are too many for the form of the file", len(nodes)/3)
	}
	return append(b, nodes...), nil
}

// soundSamples returns the letters of all words with their contexts, by letter; and the sounds, by number and by
// name.
func soundSamples(all []dictionaryEntry, sounds [][]string) (number int, names []string, samples [26][]sample) {
	count := map[string]int{}
	for _, of := range sounds {
		for _, s := range of {
			count[s]++
		}
	}
	for s, n := range count {
		if n >= minOccurrences {
			names = append(names, s)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(count[b]-count[a], strings.Compare(a, b)) })
	names = names[:min(len(names), maxSounds)]
	slices.Sort(names)
	index := map[string]int{}
	for i, s := range names {
		index[s] = i
	}
	for i, e := range all {
		for at, s := range sounds[i] {
			if k, known := index[s]; known {
				letter := e.letters[at] - 'a'
				samples[letter] = append(samples[letter], sampleOf(e.letters, at, k))
			}
		}
	}
	return len(names), names, samples
}
