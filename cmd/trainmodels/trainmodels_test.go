package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"soniq/internal/intelligence/engine/nlp"
	"soniq/internal/intelligence/engine/speech"
	"soniq/internal/intelligence/transcript"
)

func TestBandwidthTraining_ReducesDistance(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("flite"); err != nil {
		t.Skip("flite is not installed")
	}
	r := bandwidthTraining{texts: []string{"My internet connection is very slow this evening. Please send me the invoice again, I never got it.",
		"Thank you, that is all I wanted to know. The technician did not come on Monday, and nobody called me back.",
		"I would like to change my address and my telephone number. We are moving to another town next month.",
		"Your order was shipped yesterday, and it should arrive tomorrow before noon. Is there anything else I can do for you?"},
		voices: []string{"slt"}, voicesPerText: 2, hidden: 8, epochs: 20, noisyShare: 0.3, resampledVoices: []string{"slt"}}
	front, err := speech.NewFrontEnd()
	if m, ok := transcript.AsMissingDependency(err); ok {
		t.Skip(m)
	}
	if err != nil {
		t.Fatal(err)
	}
	b, err := r.build()
	if err != nil {
		t.Fatal(err)
	}
	n, err := speech.ReadBandwidthExtension(b)
	if err != nil {
		t.Fatal(err)
	}
	x, err := synthesize("rms", "The invoice is wrong again.") // a sentence that is not in the training set
	if err != nil {
		t.Fatal(err)
	}
	wide, err := front.Wide(rounded(x))
	if err != nil {
		t.Fatal(err)
	}
	narrow, err := front.Narrow(telephone(x, 250))
	if err != nil {
		t.Fatal(err)
	}
	frames := min(len(wide), len(narrow))
	wide, narrow = wide[:frames], narrow[:frames]
	subtractMean(wide)
	subtractMean(narrow)
	extended := slices.Clone(narrow)
	n.Extend(extended)
	before, after := distance(narrow, wide), distance(extended, wide)
	if after > 0.9*before {
		t.Errorf("extended speech is %.3f from what was spoken, telephone speech %.3f", after, before)
	}
	if _, err := speech.ReadBandwidthExtension(b[:len(b)-4]); err == nil {
		t.Error("half a network is read")
	}
}

func distance(a, b []float32) float64 {
	sum := 0.0
	for i := range a {
		sum += float64((a[i] - b[i]) * (a[i] - b[i]))
	}
	return math.Sqrt(sum / float64(len(a)))
}

// meanings is a small WordNet: words by their synset, the number of its hypernym, and a gloss.
var meanings = []struct {
	part  byte
	words string
	wider int
	gloss string
}{
	{part: 'n', words: "animal", gloss: "a living being"},
	{part: 'n', words: "dog hound", wider: 1, gloss: "an animal that barks"},
	{part: 'n', words: "cat", wider: 1, gloss: `an animal that purrs; "the cat sleeps"`},
	{part: 'n', words: "vehicle", gloss: "a machine that drives on a road"},
	{part: 'n', words: "car auto", wider: 4, gloss: "a vehicle with a motor"},
	{part: 'n', words: "truck", wider: 4, gloss: "a vehicle for loads"},
	{part: 'v', words: "bark", gloss: "what a dog does"},
	{part: 'v', words: "drive", gloss: "what one does with a vehicle"},
}

// writeWordnet writes the small WordNet in the format of the database.
func writeWordnet(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	files := map[string]string{"noun.exc": "mice mouse\n"}
	for _, p := range parts {
		for _, f := range []string{p + ".exc", "data." + p, "index." + p} {
			files[f] += "  1 This is the licence.\n"
		}
	}
	files["noun.exc"] = "hounds dog\n"
	for i, m := range meanings {
		part, offset := partOf[m.part], fmt.Sprintf("%08d", i+1)
		words := strings.Fields(m.words)
		line := fmt.Sprintf("%s 03 %c %02x", offset, m.part, len(words))
		for _, w := range words {
			line += " " + w + " 0"
		}
		if m.wider > 0 {
			line += fmt.Sprintf(" 001 @ %08d n 0000", m.wider)
		} else {
			line += " 000"
		}
		files["data."+part] += line + " | " + m.gloss + "  \n"
		for _, w := range words {
			files["index."+part] += fmt.Sprintf("%s %c 1 1 @ 1 0 %s  \n", w, m.part, offset)
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// packLanguage encodes a language model in the format of CMU Sphinx: probabilities of words, and of words after
// others.
func packLanguage(words []string, chance []float64, after map[[2]int]float64) []byte {
	le := binary.LittleEndian
	value := func(p float64) uint32 { return math.Float32bits(float32(math.Log(p) / math.Log(logBase))) }
	b := append([]byte(trieMagic), 3)
	for _, n := range []int{len(words), len(after), 1} {
		b = le.AppendUint32(b, uint32(n))
	}
	b = le.AppendUint32(b, 1)
	tables := make([]byte, 3*tableSize)
	word := bits.Len(uint(len(words)))
	size := word + 32 + 1
	trie := make([]byte, ((1+len(after))*size+7)/8+8)
	var grams []byte
	at := 0
	for w := range words {
		grams = le.AppendUint32(le.AppendUint32(le.AppendUint32(grams, value(chance[w])), 0), uint32(at))
		for before := range words {
			p, ok := after[[2]int{before, w}]
			if !ok {
				continue
			}
			le.PutUint32(tables[4*at:], value(p))
			for k, bit := range fmt.Sprintf("%0*b", size, uint64(before)|uint64(at)<<(word+16)) {
				if bit == '1' {
					place := at*size + size - 1 - k
					trie[place/8] |= 1 << (place % 8)
				}
			}
			at++
		}
	}
	grams = le.AppendUint32(le.AppendUint32(le.AppendUint32(grams, 0), 0), uint32(at))
	b = slices.Concat(b, tables, grams, trie, make([]byte, (2*(word+16)+7)/8+8))
	names := strings.Join(words, "\x00") + "\x00"
	return append(le.AppendUint32(b, uint32(len(names))), names...)
}

func TestParseLanguage(t *testing.T) {
	t.Parallel()
	words := []string{"dog", "barks", "drives", "car"}
	b := packLanguage(words, []float64{0.1, 0.02, 0.03, 0.2}, map[[2]int]float64{{0, 1}: 0.5, {3, 2}: 0.25, {0, 2}: 0.01})
	l, err := parseLanguage(b)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(l.words, words) || math.Abs(l.probability[1]-0.02) > 1e-5 || len(l.pairs) != 3 {
		t.Fatalf("read %v", l)
	}
	for _, p := range l.pairs {
		want := map[[2]int32]float64{{0, 1}: math.Log(0.5 / 0.02), {3, 2}: math.Log(0.25 / 0.03),
			{0, 2}: math.Log(0.01 / 0.03)}[[2]int32{p.before, p.word}]
		if math.Abs(float64(p.lift)-want) > 1e-3 {
			t.Errorf("%q after %q: %v, want %v", words[p.word], words[p.before], p.lift, want)
		}
	}
	for _, broken := range [][]byte{nil, b[:30], b[:len(b)-5], append([]byte("x"), b[1:]...)} {
		if _, err := parseLanguage(broken); err == nil {
			t.Errorf("%d broken bytes are read", len(broken))
		}
	}
}

func TestBuildEmbedding_SmallWordNet(t *testing.T) {
	t.Parallel()
	words := []string{"dog", "hound", "cat", "animal", "car", "truck", "vehicle", "barks", "hounds", "drives", "xyzzy"}
	chance := slices.Repeat([]float64{0.01}, len(words))
	model := filepath.Join(t.TempDir(), "lm.bin")
	pairs := map[[2]int]float64{{0, 7}: 0.5, {1, 7}: 0.5, {4, 9}: 0.5, {5, 9}: 0.4}
	if err := os.WriteFile(model, packLanguage(words, chance, pairs), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := embeddingSources{wordnet: writeWordnet(t), model: model, words: 100, dims: 8}.build()
	if err != nil {
		t.Fatal(err)
	}
	l, err := nlp.ReadWordEmbedding(string(b))
	if err != nil {
		t.Fatal(err)
	}
	v, err := l.Embed(context.Background(), []string{"dog", "hound", "truck", "hounds"})
	if err != nil {
		t.Fatal(err)
	}
	if like, unlike := dot(v[0], v[1]), dot(v[0], v[2]); like < unlike+0.3 {
		t.Errorf("dog is %.2f like hound, and %.2f like truck", like, unlike)
	}
	if same := dot(v[0], v[3]); same < 0.99 {
		t.Errorf("hounds is %.2f like its base form", same)
	}
}

func dot(a, b []float32) (s float32) {
	for i := range a {
		s += a[i] * b[i]
	}
	return s
}

func TestEigenvectors(t *testing.T) {
	t.Parallel()
	d := dense{3, []float32{2, 1, 0, 1, 3, 1, 0, 1, 4, 5, 0, 1, 1, 1, 1}}
	a := d.gram()
	values, vectors := eigenvectors(d.gram())
	for k := range values {
		if k > 0 && values[k] > values[k-1] {
			t.Errorf("eigenvalues are %v", values)
		}
		for i := range a {
			sum := 0.0
			for j := range a {
				sum += a[i][j] * vectors[j][k]
			}
			if math.Abs(sum-values[k]*vectors[i][k]) > 1e-6 {
				t.Errorf("vector %d is turned to %v, want %v", k, sum, values[k]*vectors[i][k])
			}
		}
	}
}

func TestRun_InvalidArguments(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out")
	for _, args := range [][]string{{}, {"cake"}, {"lexsem"}, {"lexsem", "-out", out, "-wordnet", "/nowhere"}, {"bandwidth", "-out", out, "-texts", "/nowhere"}} {
		if err := run(args); err == nil {
			t.Errorf("%q makes something", args)
		}
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("what could not be made left a file")
	}
}
