package strictjson

import (
	"bytes"
	"math/big"
	"strconv"
)

// longestInteger is the highest number of characters of an integer that PlainIntegers writes: those of a 64-bit integer.
const longestInteger = 20

// PlainIntegers writes every number of a text in JSON that has no fraction as an integer: 5.0, 50e-1 and 0.5E1 as 5. JSON does not
// distinguish them, but decoders of other languages do. A text that is no JSON, or has no such number, is returned unchanged.
func PlainIntegers(text []byte) []byte {
	if bytes.IndexByte(text, '.') < 0 && bytes.IndexByte(text, 'e') < 0 && bytes.IndexByte(text, 'E') < 0 {
		return text
	}
	var out []byte
	copied := 0
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '"':
			i = endOfString(text, i)
		case c == '-' || c >= '0' && c <= '9':
			end := i + 1
			for end < len(text) && bytes.IndexByte([]byte("0123456789+-.eE"), text[end]) >= 0 {
				end++
			}
			if plain := PlainInteger(string(text[i:end])); plain != string(text[i:end]) {
				out = append(append(out, text[copied:i]...), plain...)
				copied = end
			}
			i = end
		default:
			i++
		}
	}
	if copied == 0 {
		return text
	}
	return append(out, text[copied:]...)
}

// endOfString returns the position behind a string that begins at i.
func endOfString(text []byte, i int) int {
	for i++; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

// PlainInteger returns a number in JSON without its fraction and exponent, if its value is an integer. It returns any other text
// unchanged.
func PlainInteger(number string) string {
	at := bytes.IndexAny([]byte(number), "eE")
	if at >= 0 { // an exponent is limited before it costs memory
		if exponent, err := strconv.Atoi(number[at+1:]); err != nil || exponent > longestInteger || exponent < -len(number) {
			return number
		}
	} else if bytes.IndexByte([]byte(number), '.') < 0 {
		return number
	}
	value, ok := new(big.Rat).SetString(number)
	if !ok || !value.IsInt() || len(value.Num().String()) > longestInteger {
		return number
	}
	return value.Num().String()
}
