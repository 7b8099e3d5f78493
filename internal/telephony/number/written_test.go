package number

import (
	"fmt"
	"testing"
	"unicode"
)

// Numbers that were copied from an address book or a web page carry invisible characters and punctuation.
//
// https://github.com/glific/glific/issues/4815, https://github.com/signalapp/Signal-Android/issues/11630
func TestParse_WhatFollowsNumber(t *testing.T) {
	t.Parallel()
	const want = "+442079460018"
	for _, plain := range []string{want, "020 7946 0018", "+44 (0)20 7946 0018", "0044 20 7946 0018"} {
		for _, more := range []string{"", "\u202c", "\u202d", "\u200e", "\u200f", "\u200b", "\u2060", "\ufeff", "\u2066", "\u2069", "\u00ad", "\ufe0f", ",",
			";", ".", ":", "!", "?", "…", "'", `"`, "”", "»", ")", "]", "}", ">", "/", "-", "–", "—", "_", "|", "~", "·", "•", "、", "。", "،", "؛",
			" ", "\u00a0", "\u202f", "\u3000", "\t", "\r\n", "\x00", ",;", " , ", "\u202c;"} {
			for _, text := range []string{plain + more, more + plain, more + plain + more} {
				if more == ")" && text != plain+more {
					continue
				}
				if got, ok := Parse(text, "GB"); !ok || got != want {
					t.Errorf("%q: %q, %v", text, got, ok)
				}
			}
		}
	}
	for _, text := range []string{"\u202a+44\u202c 20\u00a07946\u202f0018", "+44\u200b20\u200e79460018", "＋４４２０７９４６００１８", "+٤٤٢٠٧٩٤٦٠٠١٨",
		"+44‑20‒7946–0018", "+44 20−7946−0018", "442079460018.0", "+442079460018.00", `="+442079460018"`, "tel:+442079460018;", "<tel:+44-20-7946-0018>",
		"'+442079460018"} {
		if got, ok := Parse(text, "GB"); !ok || got != want {
			t.Errorf("%q: %q, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", ",", "\u202c", "4.47912E+11", "4,47912E+11", "4.47912345678E+11", "4.4E11", `="4.47912E+11"`, "abc", "+"} {
		if got, ok := Parse(text, "GB"); ok {
			t.Errorf("%q is read as %q", text, got)
		}
	}
}

func TestWritten_DigitsOfAllScripts(t *testing.T) {
	t.Parallel()
	n := 0
	for _, block := range unicode.Nd.R16 {
		for zero := rune(block.Lo); zero+9 <= rune(block.Hi); zero += 10 {
			for i := range rune(10) {
				n++
				if got, want := Written(fmt.Sprintf("+44%c0", zero+i)), fmt.Sprintf("+44%d0", i); got != want {
					t.Errorf("%q (%x): %q, want %q", zero+i, zero+i, got, want)
				}
			}
		}
	}
	for _, block := range unicode.Nd.R32 {
		for zero := rune(block.Lo); zero+9 <= rune(block.Hi); zero += 10 {
			for i := range rune(10) {
				n++
				if got, want := Written(fmt.Sprintf("+44%c0", zero+i)), fmt.Sprintf("+44%d0", i); got != want {
					t.Errorf("%q (%x): %q, want %q", zero+i, zero+i, got, want)
				}
			}
		}
	}
	if n < 300 {
		t.Errorf("only %d digits", n)
	}
}

// A number in a filter is compared with what calls and messages store.
func TestStored(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"020 7946 0018": "+442079460018", "+442079460018\u202c": "+442079460018", "101": "101", "101,": "101",
		"anonymous": "anonymous", "": "", "*97": "*97", "116117": "116117"} {
		if got := Stored(text, "GB"); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := Stored(FromURL(" 442079460018"), "US"); got != "+442079460018" {
		t.Errorf("a lost plus: %q", got)
	}
}

// In a country with its own digits for a call abroad, 00 and + are the same at each place that reads a number. An extension does not hide
// the number before it.
func TestStored_SpellingsFromAbroad(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"0049 30 901820": "+4930901820", "011 49 30 901820": "+4930901820", "00 49 (0)30 901820": "+4930901820",
		"tel:0049-30-901820": "+4930901820", "+4930901820;ext=12": "+4930901820", "tel:+4930901820;ext=3": "+4930901820",
		"202-555-0123 ext. 9": "+12025550123", "0049 30": "0049 30", "00": "00", "002025550123": "002025550123",
		"anonymous": "anonymous", "101": "101",
	} {
		if got := Stored(text, "US"); got != want {
			t.Errorf("%q is stored as %q, want %q", text, got, want)
		}
	}
	for text, want := range map[string]string{"0049 30 901820": "+4930901820", "00112": "", "+4930901820;ext=12": "", "0000000000000": ""} {
		if got, ok := Parse(text, "US"); got != want && ok {
			t.Errorf("%q is read as %q, want %q", text, got, want)
		}
	}
}
