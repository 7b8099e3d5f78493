package contact

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

func TestVCardReader_Properties(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ lines, want string }{
		"escapes":            {`N:Hopper\; Rear\\;Grace\, B.;;;` + "\r\n" + `ORG:A\;B\, C:\\New;Engines` + "\r\n" + `TITLE:one\Ntwo`, `Hopper; Rear\|Grace, B.|A;B, C:\New|one two|[]|[]|[]`},
		"name without N":     {"FN:Grace Hopper", "Hopper|Grace|||[]|[]|[]"},
		"empty N":            {"FN:Grace Hopper\nN:;;;;", "Hopper|Grace|||[]|[]|[]"},
		"fax is no phone":    {"TEL;WORK;FAX:1\nTEL;TYPE=fax,home:2\nTEL;HOME:3", "||||[{3 home false  }]|[]|[]"},
		"types of 2.1":       {"TEL;CELL;VOICE:1\nEMAIL;INTERNET;WORK:a@b.c", "||||[{1 mobile false  }]|[{a@b.c work false}]|[]"},
		"list of quoted":     {`TEL;TYPE="voice","cell";VALUE=uri:tel:+1`, "||||[{+1 mobile false  }]|[]|[]"},
		"colon in parameter": {`TEL;X-NOTE="a:b;c";TYPE=home:1`, "||||[{1 home false  }]|[]|[]"},
		"folded":             {"TIT\n LE:a\n\t b", "|||a b|[]|[]|[]"},
		"quoted-printable":   {"N;ENCODING=QUOTED-PRINTABLE:M=C3=BC=\nller;J=\n =C3=B6rg\nTITLE;QUOTED-PRINTABLE:a=0D=0Ab", "Müller|J örg||a b|[]|[]|[]"},
		"tags":               {`CATEGORIES:gold\,first,x` + "\nCATEGORIES:y", "||||[]|[]|[gold first x y]"},
		"no property":        {"hello\n\n:x\nTEL\nTITLE:t", "|||t|[]|[]|[]"},
	} {
		r, err := newVCardReader(strings.NewReader("junk\nbegin:vcard\n" + c.lines + "\nEND:VCARD\n")).next()
		x := r.contact
		got := fmt.Sprint(strings.Join([]string{x.LastName, x.FirstName, x.Company, x.Title}, "|"), "|", x.Phones, "|", x.Emails, "|",
			x.Tags)
		if err != nil || len(r.violations) > 0 || r.line != 2 || got != c.want {
			t.Errorf("%s: line %d: %s, want %s: %v %v", name, r.line, got, c.want, r.violations, err)
		}
	}
}

func TestVCardReader_Limits(t *testing.T) {
	t.Parallel()
	picture := "PHOTO;ENCODING=b:" + strings.Repeat("A", maxCard) + strings.Repeat("\n "+strings.Repeat("A", 70), 5000) + "\n"
	note := "NOTE:" + strings.Repeat("x", maxCard) + "\n"
	cards := newVCardReader(strings.NewReader("BEGIN:VCARD\n" + picture + "FN:Ada\nEND:VCARD\nBEGIN:VCARD\nFN:Big\n" + note + "END:VCARD\nBEGIN:VCARD\nFN:Open"))
	for _, want := range []string{"", "card invalid_length a card may have 256 kB", "END required the card does not end"} {
		r, err := cards.next()
		got := ""
		for _, v := range r.violations {
			got = v.Field + " " + v.Code + " " + v.Message
		}
		if err != nil || got != want || want == "" && r.contact.FirstName != "Ada" {
			t.Errorf("%q, want %q: %+v, %v", got, want, r.contact, err)
		}
	}
	if _, err := cards.next(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
	endless := strings.NewReader("BEGIN:VCARD\nNOTE:" + strings.Repeat("x", maxCardLine+1))
	if _, err := newVCardReader(endless).next(); !errors.Is(err, errFile) {
		t.Errorf("a line over the limit: %v", err)
	}
}
