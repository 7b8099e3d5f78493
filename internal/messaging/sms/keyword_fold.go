package sms

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// maxKeywordMessage is the length in bytes of the longest message in which a keyword is searched. A keyword under a long
// quotation is still found.
const maxKeywordMessage = 4_000

// foldKeyword returns the form in which keywords are compared. It has the compatibility forms of Unicode (NFKC), in upper
// case: letters and digits, and single spaces for blanks and line breaks. Punctuation, symbols, emoji, marks and
// characters without a width are left out.
func foldKeyword(text string) string {
	folded := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r), unicode.Is(unicode.Z, r):
			return ' '
		case unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r): // fillers of Hangul are letters without a glyph
			return -1
		case unicode.IsLetter(r), unicode.IsNumber(r):
			return unicode.ToUpper(r)
		}
		return -1
	}, norm.NFKC.String(withoutEmojiLetters(text)))
	return strings.Join(strings.Fields(folded), " ")
}

// Characters of emoji that NFKC or foldKeyword would keep as letters or digits.
const (
	emojiVariation = '\ufe0f'             // the character before it is an emoji (Unicode Technical Standard 51)
	keycap         = '\u20e3'             // the digit before it is an emoji
	letterSigns    = "\u2120\u2122\u2139" // service mark, trade mark, information
)

// withoutEmojiLetters leaves out emoji that are made of letters and digits, such as the key 1 or the sign for a trade mark.
// Other characters stay.
func withoutEmojiLetters(text string) string {
	if !strings.ContainsAny(text, letterSigns+string(emojiVariation)+string(keycap)) {
		return text
	}
	out := make([]rune, 0, len(text))
	for _, r := range text {
		switch {
		case strings.ContainsRune(letterSigns, r):
		case r == emojiVariation || r == keycap:
			if n := len(out); n > 0 && !unicode.IsLetter(out[n-1]) && !unicode.IsSpace(out[n-1]) {
				out = out[:n-1]
			}
		default:
			out = append(out, r)
		}
	}
	return string(out)
}

// ownLines returns a message without quoted lines and without its signature. Quoted lines begin with >. The signature
// follows a line of two or more dashes or underscores (RFC 3676 section 4.3).
func ownLines(body string) string {
	var own []string
	for line := range strings.Lines(body) {
		line = strings.TrimFunc(line, func(r rune) bool { return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) })
		if len(line) >= 2 && strings.Trim(line, "-_\u2014") == "" {
			break
		}
		if !strings.HasPrefix(line, ">") {
			own = append(own, line)
		}
	}
	return strings.Join(own, " ")
}
