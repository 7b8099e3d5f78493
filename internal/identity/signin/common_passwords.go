package signin

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"strings"
)

// commonPasswords has the first five bytes of the SHA-256 of each common password, sorted. The list is that of zxcvbn (MIT), which is made
// from published leaks: see docs/dependencies.md. One in 30 million other passwords is refused by chance.
//
//go:embed common_passwords.bin
var commonPasswords []byte

const commonLength = 5 // bytes of a hash

// inList reports whether a text is in the list.
func inList(text string) bool {
	sum := sha256.Sum256([]byte(text))
	low, high := 0, len(commonPasswords)/commonLength
	for low < high {
		at := (low + high) / 2
		switch bytes.Compare(commonPasswords[at*commonLength:(at+1)*commonLength], sum[:commonLength]) {
		case 0:
			return true
		case -1:
			low = at + 1
		default:
			high = at
		}
	}
	return false
}

// padding are the characters that people put around a common password to make it longer.
const padding = "0123456789 !\"#$%&'()*+,-./:;<=>?@[]^_{|}~"

func trimPadding(text string) string { return strings.Trim(text, padding) }

// letters undoes the usual replacements of letters.
var letters = strings.NewReplacer("0", "o", "1", "l", "3", "e", "4", "a", "5", "s", "7", "t", "@", "a", "$", "s", "!", "i")

// isCommon reports whether a password in lower case is a common one: as it is, with padding around it, with letters replaced, written
// backwards, or repeated.
func isCommon(low string) bool {
	for _, text := range []string{low, period(low), period(reverse(low))} {
		if runs(text) || inList(text) || coreIsCommon(text) || coreIsCommon(letters.Replace(text)) {
			return true
		}
	}
	return false
}

// coreIsCommon reports whether a text is a common password with digits, or with few other characters, around it.
func coreIsCommon(text string) bool {
	core := trimPadding(text)
	rest := strings.Replace(text, core, "", 1)
	if strings.Trim(rest, "0123456789") != "" && 3*len(core) < len(text) {
		return false
	}
	return core == "" || inList(core) || inList(letters.Replace(core)) || inList(period(core))
}

func reverse(text string) string {
	all := []rune(text)
	for i, j := 0, len(all)-1; i < j; i, j = i+1, j-1 {
		all[i], all[j] = all[j], all[i]
	}
	return string(all)
}

// period returns the shortest part of which a text is a repetition.
func period(text string) string {
	for n := 1; n <= len(text)/2; n++ {
		if len(text)%n == 0 && strings.Repeat(text[:n], len(text)/n) == text {
			return text[:n]
		}
	}
	return text
}

// runs reports whether a text consists of keys in a row, or of letters in the order of the alphabet.
func runs(text string) bool {
	const rows = "abcdefghijklmnopqrstuvwxyz 01234567890 qwertyuiop asdfghjkl zxcvbnm qwertzuiop yxcvbnm azertyuiop qsdfghjklm wxcvbn"
	changes := 0
	for i := range len(text) - 1 {
		pair := text[i : i+2]
		if pair[0] != pair[1] && !strings.Contains(rows, pair) && !strings.Contains(rows, reverse(pair)) {
			changes++
		}
	}
	return changes <= len(text)/6
}
