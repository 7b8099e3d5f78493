package speechmodel

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// vocabularySize is the number of Moonshine's tokens: those of the tokenizer, and special tokens without text.
const vocabularySize = 32768

var vocabulary = regexp.MustCompile(`vocab_base64\s*=\s*"([A-Za-z0-9+/=]+)"`)

// tokens converts the tokenizer's script, which has its words in one base64 string, to the token file of sherpa-onnx. That has the bytes
// of each token in base64, and its number.
func tokens(script []byte) ([]byte, error) {
	m := vocabulary.FindSubmatch(script)
	if m == nil {
		return nil, errors.New("there is no vocabulary in the tokenizer")
	}
	words, err := base64.StdEncoding.DecodeString(string(m[1]))
	if err != nil {
		return nil, fmt.Errorf("read vocabulary: %w", err)
	}
	var out bytes.Buffer
	all := strings.Split(string(words), "\n")
	for i := range vocabularySize {
		token := []byte(fmt.Sprintf("<%d>", i))
		if i < len(all) {
			token = tokenBytes(all[i])
		}
		fmt.Fprintf(&out, "%s\t%d\n", base64.StdEncoding.EncodeToString(token), i)
	}
	return out.Bytes(), nil
}

// tokenBytes returns the bytes of a token: one byte for the form <0x41>, else its letters, with the sign for a space
// replaced.
func tokenBytes(word string) []byte {
	if len(word) == len("<0x41>") && strings.HasPrefix(word, "<0x") {
		if b, err := hex.DecodeString(word[3:5]); err == nil {
			return b
		}
	}
	return []byte(strings.ReplaceAll(word, "▁", " "))
}
