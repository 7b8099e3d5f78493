// Trainmodels builds the data files that package engine embeds: the network that extends telephone speech
// (bandwidth.bin), the lexicon of the builtin embedding (lexsem.bin), and the pronunciation of English letters
// (sounds.bin). `make models` runs it; internal/intelligence/engine/NOTICE lists the licences of its inputs.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "trainmodels:", err)
		os.Exit(1)
	}
}

// run builds the file named by the first argument.
func run(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("say what to make: bandwidth, lexsem or sounds")
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	out := flags.String("out", "", "file to write")
	switch args[0] {
	case "bandwidth":
		r := bandwidthTraining{voices: defaultVoices}
		texts := flags.String("texts", "internal/intelligence/memory/testdata/memory-eval.json",
			"calls to be spoken, in the form of the evaluation set")
		without := flags.String("without", heldOut, "calls that are left out, for evaluation")
		flags.IntVar(&r.voicesPerText, "times", 1, "voices that speak each text")
		flags.IntVar(&r.hidden, "hidden", 128, "hidden units")
		flags.IntVar(&r.epochs, "epochs", 12, "times all frames are seen")
		flags.Float64Var(&r.noisyShare, "noisy", 0, "share of the speech that has noise, 10 to 25 dB below it")
		sped := flags.String("sped", "", "voices that speak half of their texts faster and higher, or slower and lower, by up to 15 %")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		r.resampledVoices = strings.Split(*sped, ",")
		var err error
		if r.texts, err = readTexts(*texts, *without); err != nil {
			return err
		}
		return write(*out, r.build)
	case "lexsem":
		var s embeddingSources
		flags.StringVar(&s.wordnet, "wordnet", "/usr/share/wordnet", "folder of WordNet 3.0's database")
		flags.StringVar(&s.model, "model", "/usr/share/pocketsphinx/model/en-us/en-us.lm.bin", "English language model of CMU Sphinx")
		flags.IntVar(&s.words, "words", 30000, "most frequent words that are kept, with their base forms")
		flags.IntVar(&s.dims, "dims", 256, "dimensions")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		return write(*out, s.build)
	case "sounds":
		dictionary := flags.String("dictionary", "/usr/share/pocketsphinx/model/en-us/cmudict-en-us.dict",
			"the CMU dictionary in the form of pocketsphinx")
		least := flags.Int("least", 4, "letters of the dictionary that a rule is made from, at least")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		return write(*out, func() ([]byte, error) { return buildSounds(*dictionary, *least) })
	}
	return fmt.Errorf("%q is none of bandwidth, lexsem and sounds", args[0])
}

// write stores the result of build in a file. If build fails the file is not touched.
func write(path string, build func() ([]byte, error)) error {
	if path == "" {
		return fmt.Errorf("say where to write: -out FILE")
	}
	b, err := build()
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		return fmt.Errorf("write what was built: %w", err)
	}
	fmt.Fprintf(os.Stderr, "%s: %d bytes\n", path, len(b))
	return nil
}
