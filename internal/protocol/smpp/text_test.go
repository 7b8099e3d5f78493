package smpp

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestParts_Split(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text   string
		t      TextSettings
		parts  int
		coding uint8
	}{
		{"", TextSettings{}, 1, 0},
		{strings.Repeat("a", 160), TextSettings{}, 1, 0},
		{strings.Repeat("a", 161), TextSettings{}, 2, 0},
		{strings.Repeat("a", 306), TextSettings{}, 2, 0},
		{strings.Repeat("a", 307), TextSettings{}, 3, 0},
		{strings.Repeat("a", 306), TextSettings{Long: UDH16}, 3, 0},
		{strings.Repeat("€", 80), TextSettings{}, 1, 0},
		{strings.Repeat("€", 81), TextSettings{}, 2, 0},
		{strings.Repeat("€", 153), TextSettings{}, 3, 0}, // 76 pairs in each part, because no pair is split
		{strings.Repeat("я", 70), TextSettings{}, 1, 8},
		{strings.Repeat("я", 71), TextSettings{}, 2, 8},
		{strings.Repeat("я", 135), TextSettings{}, 3, 8},
		{strings.Repeat("😀", 35), TextSettings{}, 1, 8},
		{strings.Repeat("😀", 67), TextSettings{}, 3, 8}, // 33 in each part
		{strings.Repeat("a", 400), TextSettings{Long: Payload}, 1, 0},
		{strings.Repeat("a", 400), TextSettings{Long: SAR}, 3, 0},
		{strings.Repeat("a", 400), TextSettings{Default: GSMPacked}, 3, 0},
		{strings.Repeat("é", 160), TextSettings{Default: Latin1}, 1, 0},
		{strings.Repeat("{", 81), TextSettings{Default: Latin1}, 2, 0},
		{"€", TextSettings{Default: Latin1}, 1, 8},
		{"é", TextSettings{Default: ASCII}, 1, 8},
	} {
		parts, err := c.t.Parts(c.text, 1)
		if err != nil || len(parts) != c.parts || parts[0].DataCoding != c.coding {
			t.Errorf("%.6q × %d, %+v: %d parts, coding %d, %v", c.text, utf8.RuneCountInString(c.text), c.t, len(parts),
				parts[0].DataCoding, err)
		}
		for _, p := range parts {
			if len(p.ShortMessage) > 254 {
				t.Errorf("%.6q: a part has %d octets", c.text, len(p.ShortMessage))
			}
		}
	}
	if _, err := (TextSettings{}).Parts(strings.Repeat("a", 255*153+1), 1); err != ErrTooLong {
		t.Errorf("256 parts: %v", err)
	}
	if _, err := (TextSettings{Long: Payload}).Parts(strings.Repeat("a", MaxPDU), 1); err != ErrTooLong {
		t.Errorf("64 KiB of text: %v", err)
	}
}

// Alphabets of random texts: the characters of each coding.
var alphabets = []string{gsmBasicWithoutEscape(), gsmBasicWithoutEscape() + "\f^{}\\[~]|€", "аяЖ中a😀𝄞é€ \n", "plain ascii 123"}

func gsmBasicWithoutEscape() string { return strings.ReplaceAll(gsmBasic, "\x1b", "") }

func randomText(r *rand.Rand) string {
	letters := []rune(alphabets[r.IntN(len(alphabets))])
	text := make([]rune, r.IntN(500))
	for i := range text {
		text[i] = letters[r.IntN(len(letters))]
	}
	return strings.TrimRight(string(text), "\r") // see pack
}

func TestText_RoundTrip(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		way := TextSettings{Default: Alphabet(r.IntN(4)), Long: LongMode(r.IntN(4))}
		text := randomText(r)
		parts, err := way.Parts(text, uint16(r.Uint32()))
		if err != nil {
			t.Fatal(err)
		}
		kept, whole := NewMemoryPartStore(), ""
		for _, i := range r.Perm(len(parts)) {
			m := Outgoing{To: Address{Digits: "1"}}.message(parts[i])
			for _, again := range []bool{false, r.IntN(3) == 0} {
				f, ok := way.fragment("", m)
				if !ok {
					t.Fatal("a header of ours is not read")
				}
				if f.Key.Segment.Total == 0 {
					whole = way.incoming([]Fragment{f}).Text
					break
				}
				a, _ := kept.Add(t.Context(), f)
				if a.Complete != nil {
					whole = way.incoming(a.Complete).Text
					kept.Done(t.Context(), f.Key, true)
				}
				if !again {
					continue
				}
			}
		}
		if way.Default == GSMPacked { // a carriage return at the end of a part may be padding
			text, whole = strings.ReplaceAll(text, "\r", ""), strings.ReplaceAll(whole, "\r", "")
		}
		if whole != text {
			t.Fatalf("%+v, %d parts\nsent %q\ncame %q", way, len(parts), text, whole)
		}
	}
}

func TestPack_Septets(t *testing.T) {
	t.Parallel()
	if got := hex.EncodeToString(pack([]byte("hellohello"), 0)); got != "e8329bfd4697d9ec37" {
		t.Errorf("hellohello is %s", got)
	}
	for n := range 40 {
		for fill := range 7 {
			text := bytes.Repeat([]byte{'@', 0, 'z'}, 14)[:n]
			if back := unpack(pack(text, fill), fill); !bytes.Equal(back, text) {
				t.Errorf("%d septets after %d bits: %x, not %x", n, fill, back, text)
			}
		}
	}
}

// https://github.com/Mnexa-AI/e2a/issues/804
func TestDecode_DataCodings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		t      TextSettings
		coding uint8
		octets string
		text   string
		ok     bool
	}{
		{TextSettings{}, 0, "\x00\x02\x11\x1b\x65", "@$_€", true},
		{TextSettings{}, 0, "\x1b\x41 \x1b", "A  ", true},
		{TextSettings{}, 0, "a\xff", "a\ufffd", false},
		{TextSettings{Default: Latin1}, 0, "@\xe9", "@é", true},
		{TextSettings{Default: ASCII}, 0, "@\xe9", "@é", false},
		{TextSettings{}, 1, "@_$", "@_$", true},
		{TextSettings{GSMAsIA5: true}, 1, "\x00\x11\x02", "@_$", true},
		{TextSettings{}, 3, "\xfc\xdf", "üß", true},
		{TextSettings{}, 6, "\xb0\xef", "Ая", true},
		{TextSettings{}, 7, "\xe0", "א", true},
		{TextSettings{}, 8, "\xd8\x3d\xde\x00\x00a", "😀a", true},
		{TextSettings{}, 8, "\xd8\x3d\x00a\x00", "\ufffda", false},
		{TextSettings{}, 8, "\xde\x00\xd8\x3d", "\ufffd\ufffd", false},
		{TextSettings{}, 8, "\x00a\xd8\x3d", "a\ufffd", false},
		{TextSettings{}, 8, "\xff\xfd\x00a", "\ufffda", true}, // sent so
		{TextSettings{}, 8, "\x00a\x00\x00", "a", true},
		{TextSettings{}, 8, "\x00\x00\x00a", "\x00a", false},
		{TextSettings{}, 3, "a\x00b", "a\x00b", false},
		{TextSettings{}, 7, "\xe0\xfb", "א\ufffd", false},
		{TextSettings{}, 0x18, "\x00a", "a", true},
		{TextSettings{}, 0xf0, "\x00", "@", true},
		{TextSettings{}, 0xe0, "\x00a", "a", true},
		{TextSettings{}, 2, "\x01", "", false},
		{TextSettings{}, 4, "\x01", "", false},
		{TextSettings{}, 0xf4, "\x01", "", false},
	} {
		text, ok := c.t.Decode(c.coding, []byte(c.octets))
		if text != c.text || ok != c.ok {
			t.Errorf("%+v, coding %#x, %x: %q %v", c.t, c.coding, c.octets, text, ok)
		}
	}
}

func TestSegment_MalformedHeaders(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		octets string
		ok     bool
		want   Segment
	}{
		{"\x05\x00\x03\x07\x02\x01hi", true, Segment{Reference: 7, Total: 2, Sequence: 1}},
		{"\x06\x08\x04\x01\x07\x02\x01hi", true, Segment{Reference: 0x107, Wide: true, Total: 2, Sequence: 1}},
		{"\x0b\x05\x04\x0b\x84\x23\xf0\x00\x03\x07\x02\x02hi", true, Segment{Reference: 7, Total: 2, Sequence: 2}},
		{"\x05\x00\x03\x07\x02\x03hi", true, Segment{}}, // the third of two: read as a single message
		{"\x05\x00\x03\x07\x00\x00hi", true, Segment{}},
		{"\xffhi", false, Segment{}},
		{"\x02\x00\x09hi", false, Segment{}},
		{"", false, Segment{}},
	} {
		m := &Message{ESMClass: udhi, ShortMessage: []byte(c.octets)}
		s, _, text, ok := m.segment()
		if s != c.want || ok != c.ok || ok && string(text) != "hi" {
			t.Errorf("%x: %+v %q %v", c.octets, s, text, ok)
		}
	}
}

func newFragment(from string, reference uint16, total, sequence uint8, text string, at time.Time) Fragment {
	return Fragment{Key: Key{From: from, Segment: Segment{Reference: reference, Total: total}}, Sequence: sequence, Octets: []byte(text),
		MessageID: text, At: at}
}

func TestMemoryPartStore_LimitsAndDuplicates(t *testing.T) {
	t.Parallel()
	ctx, now := t.Context(), time.Now()
	p := NewMemoryPartStore()
	for i := range maxIncompletePerSender {
		if _, err := p.Add(ctx, newFragment("a", uint16(i), 2, 1, "x", now)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.Add(ctx, newFragment("a", 99, 2, 1, "x", now)); err == nil {
		t.Error("a sender has as many incomplete messages as it likes")
	}
	for i := 0; ; i++ {
		if _, err := p.Add(ctx, newFragment(fmt.Sprint(i), 1, 2, 1, "x", now)); err != nil {
			break
		} else if i > 2*maxIncomplete {
			t.Fatal("there is no limit")
		}
	}
	if _, err := NewMemoryPartStore().Add(ctx, newFragment("a", 1, 2, 1, strings.Repeat("x", maxFragmentOctets+1),
		now)); err != BadMessageLength {
		t.Errorf("a part of more than 4096 octets: %v", err)
	}
	a, err := p.Add(ctx, newFragment("a", 3, 2, 2, "y", now))
	if err != nil || len(a.Complete) != 2 || a.Complete[0].Sequence != 1 {
		t.Fatalf("%+v %v", a, err)
	}
	if _, err := p.Add(ctx, newFragment("a", 3, 2, 2, "y", now)); err != errPartsBusy {
		t.Errorf("a message is handed on twice: %v", err)
	}
	p.Done(ctx, a.Complete[0].Key, false)
	if a, _ = p.Add(ctx, newFragment("a", 3, 2, 2, "y", now)); len(a.Complete) != 2 || !a.Duplicate {
		t.Errorf("what was not taken is not tried again: %+v", a)
	}
	p.Done(ctx, a.Complete[0].Key, true)
	if a, _ = p.Add(ctx, newFragment("a", 3, 2, 2, "y", now)); a.Complete != nil || !a.Duplicate || a.MessageID != "y" {
		t.Errorf("a part that came again after all was done: %+v", a)
	}
	if late, _ := p.Expired(ctx, now); len(late) != 0 {
		t.Errorf("%d are late too early", len(late))
	}
	if late, _ := p.Expired(ctx, now.Add(time.Second)); len(late) != maxIncomplete-1 {
		t.Errorf("%d are late", len(late))
	}
}

// TestMemoryPartStore_ReferenceZero proves that parts with the reference 0 are joined like those with any other.
//
// https://github.com/onomondo/onomondo-uicc/pull/174
func TestMemoryPartStore_ReferenceZero(t *testing.T) {
	t.Parallel()
	ctx, now, p := t.Context(), time.Now(), NewMemoryPartStore()
	parts, err := TextSettings{}.Parts(strings.Repeat("zero ", 50), 0)
	if err != nil {
		t.Fatal(err)
	}
	var all []Fragment
	for i, part := range parts {
		m := newMessage("").message(part)
		s, _, octets, ok := m.segment()
		if !ok || s.Reference != 0 || s.Total != 2 {
			t.Fatalf("part %d: %+v, %v", i, s, ok)
		}
		a, err := p.Add(ctx, Fragment{Key: Key{From: "a", Segment: Segment{Reference: s.Reference, Total: s.Total}}, Sequence: s.Sequence,
			Octets: octets, At: now})
		if err != nil {
			t.Fatal(err)
		}
		all = a.Complete
	}
	if got := (TextSettings{}).incoming(all); got.Text != strings.Repeat("zero ", 50) {
		t.Errorf("read %q", got.Text)
	}
}

func TestMemoryPartStore_ReusedReference(t *testing.T) {
	t.Parallel()
	ctx, now, p := t.Context(), time.Now(), NewMemoryPartStore()
	p.Add(ctx, newFragment("a", 1, 2, 1, "old ", now))
	p.Add(ctx, newFragment("a", 1, 2, 1, "new ", now))
	a, _ := p.Add(ctx, newFragment("a", 1, 2, 2, "text", now))
	if got := (TextSettings{}).incoming(a.Complete); got.Text != "new text" || got.Parts != 2 || got.Missing != 0 {
		t.Errorf("%+v", got)
	}
}

// TestIncoming_Undecodable keeps all octets of a message if one part is no text.
//
// https://github.com/Mnexa-AI/e2a/issues/804
func TestIncoming_Undecodable(t *testing.T) {
	t.Parallel()
	part := func(sequence, coding uint8, octets string) Fragment {
		return Fragment{Sequence: sequence, Octets: []byte(octets), Message: Message{DataCoding: coding}}
	}
	in := TextSettings{}.incoming([]Fragment{part(1, 0, "ab"), part(2, 8, "\xd8\x3d")})
	if in.Text != "" || string(in.Binary) != "ab\xd8\x3d" {
		t.Errorf("%q, %x", in.Text, in.Binary)
	}
	in = TextSettings{}.incoming([]Fragment{part(1, 8, "\x00a\xd8\x3d"), part(2, 8, "\xde\x00")})
	if in.Text != "a😀" || in.Binary != nil {
		t.Errorf("a character in two parts: %q, %x", in.Text, in.Binary)
	}
	if in = (TextSettings{}).incoming([]Fragment{part(0, 4, "")}); in.Binary == nil {
		t.Error("an empty binary message is a text")
	}
}
