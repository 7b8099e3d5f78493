package contact_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"mime/multipart"
	"slices"
	"strings"
	"testing"
	"time"

	"soniq/internal/customer/contact"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/job"
	"soniq/internal/platform/op/optest"
)

// runJobs runs the import jobs until the test ends.
func (h *fixture) runJobs() *job.Runner {
	h.t.Helper()
	r := &job.Runner{DB: h.d, Queue: h.jobs, Name: contact.Queue, Node: "n", Log: slog.New(slog.NewTextHandler(testLog{h.t}, nil)),
		Options: contact.Options()}
	h.RegisterJobs(r)
	if err := r.Start(context.Background()); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { r.Stop(context.Background()) })
	return r
}

// waitImport waits for the end of an import.
func (h *fixture) waitImport(id string) *optest.Answer {
	h.t.Helper()
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) { //nolint:forbidigo // polls a condition that publishes no event
		a := h.do("GET", "/crm/imports/"+id, nil).Want(200)
		if s := a.Text("status"); s == "completed" || s == "failed" {
			return a
		}
		if time.Since(began) > 2*time.Minute {
			h.t.Fatalf("not done: %s", a.Bytes)
		}
	}
}

func (h *fixture) upload(file string, fields ...string) *optest.Answer {
	h.t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, f := range fields {
		name, value, _ := strings.Cut(f, "=")
		_ = w.WriteField(name, value)
	}
	part, _ := w.CreateFormFile("file", "people.csv")
	_, _ = part.Write([]byte(file))
	_ = w.Close()
	return h.do("POST", "/crm/imports", b.String(), "Content-Type: "+w.FormDataContentType())
}

const csvFile = "\ufeffFirst Name;Last Name;Organization;Mobile Phone;E-mail 1 - Value;Tags;Shoe size\r\n" +
	"Ada;Lovelace;Analytical;07700 900123;ada@example.com;\"gold, first\";37\r\n" +
	";;;not a number;x;;\r\n" +
	"Charles;Babbage;;00442079460018;;;\r\n" +
	"Ada;Byron;;+447700900123;;silver;\r\n" +
	"a;b;c;d;e;f;g;h\r\n\r\n"

func TestImport_CSVErrorsListed(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.runJobs()
		first := h.upload(csvFile).Want(202)
		if first.Text("status") != "queued" || first.Text("format") != "csv" || first.Text("filename") != "people.csv" || first.Text("duplicates") != "skip" {
			t.Errorf("accepted %s", first.Bytes)
		}
		a := h.waitImport(first.Text("id"))
		if a.Text("status") != "completed" || a.At("done") != float64(5) || a.At("created") != float64(2) || a.At("skipped") != float64(1) || a.At("failed") != float64(2) ||
			a.At("errors.0.line") != float64(3) || a.Text("errors.0.field") != "phones.0.number" {
			t.Errorf("got %s", a.Bytes)
		}
		l := h.lookup("+447700900123").Want(200)
		c := h.do("GET", "/contacts/"+l.Text("contact_id"), nil).Want(200)
		if c.Text("last_name") != "Lovelace" || c.Text("source") != "import" || c.Text("custom.Shoe size") != "37" || fmt.Sprint(c.At("tags")) != "[first gold]" ||
			c.Text("phones.0.label") != "mobile" {
			t.Errorf("imported %s", c.Bytes)
		}
		b := h.waitImport(h.upload(csvFile, "duplicates=update").Want(202).Text("id"))
		if b.At("created") != float64(0) || b.At("updated") != float64(3) {
			t.Errorf("again %s", b.Bytes)
		}
		if c := h.do("GET", "/contacts/"+l.Text("contact_id"), nil).Want(200); c.Text("last_name") != "Byron" || c.Text("company") != "Analytical" ||
			fmt.Sprint(c.At("tags")) != "[first gold silver]" {
			t.Errorf("updated %s", c.Bytes)
		}
		if b := h.waitImport(h.upload(csvFile, "duplicates=create").Want(202).Text("id")); b.At("created") != float64(3) {
			t.Errorf("created again %s", b.Bytes)
		}
	})
}

const vcardFile = "BEGIN:VCARD\r\nVERSION:3.0\r\nN:Lovelace;Ada;;;\r\nFN:Ada Lovelace\r\nORG:Analytical\\, Ltd;Engines\r\nitem1.TEL;TYPE=CELL:+44 7700\r\n  900123\r\n" +
	"EMAIL;TYPE=work:ada@example.com\r\nPHOTO;ENCODING=b:" + "AAAA" + "\r\nCATEGORIES:gold,first\r\nEND:VCARD\r\n" +
	"BEGIN:VCARD\nVERSION:2.1\nN;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:M=C3=BCller;J=C3=\n=B6rg\nTEL;WORK;VOICE:020 7946 0018\nEND:VCARD\n" +
	"BEGIN:VCARD\nVERSION:4.0\nFN:Grace Hopper\nTEL;VALUE=uri;TYPE=\"voice,home\":tel:+1-202-555-0187\nEND:VCARD\n"

func TestImport_VCardVersions(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	h.runJobs()
	a := h.waitImport(h.do("POST", "/crm/imports", map[string]any{"content": vcardFile}).Want(202).Text("id"))
	if a.Text("format") != "vcard" || a.At("created") != float64(3) || a.At("failed") != float64(0) {
		t.Fatalf("got %s", a.Bytes)
	}
	for phone, want := range map[string]string{"+447700900123": "Ada Lovelace Analytical, Ltd", "+442079460018": "Jörg Müller ", "+12025550187": "Grace Hopper "} {
		if l := h.lookup(phone).Want(200); l.Text("name")+" "+l.Text("company") != want {
			t.Errorf("%s is %s", phone, l.Bytes)
		}
	}
}

func TestImport_InvalidFileRefused(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	h.upload("").Refused("validation_failed", "file required")
	for _, body := range []string{`{}`, `{"format":"vcard"}`, `{"format":"vcard","content":" \n"}`} {
		h.do("POST", "/crm/imports", body).Refused("validation_failed", "content required")
	}
	h.upload("hello\nworld\n").Refused("validation_failed", "file unreadable")
	h.upload(csvFile, "duplicates=maybe", "format=xls").Refused("validation_failed", "duplicates invalid_value", "format invalid_value")
	h.upload(csvFile, "colour=red").Want(400).Refused("unknown_field")
	h.do("POST", "/crm/imports", "x", "Content-Type: text/csv").Want(415)
	h.do("GET", "/crm/imports/imp_none", nil).Want(404)
}

// An import is interrupted repeatedly, each time at another point. No record is lost and none is duplicated.
func TestImport_ResumesAfterFailure(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		cut := &failingFiles{after: 9000}
		h := newFixture(t, d, func(c *contact.Config) { cut.Files, c.Files = c.Files, cut })
		began := time.Now()
		h.jobs.Clock = clock.Func(func() time.Time { return began.Add(20 * time.Since(began)) }) // shortens the retry delay
		const people = 1234
		var file strings.Builder
		file.WriteString("name,phone\n")
		for i := range people {
			fmt.Fprintf(&file, "Person %d,+4420794%05d\n", i, i)
		}
		id := h.upload(file.String(), "duplicates=create").Want(202).Text("id")
		h.runJobs()
		// the job fails in the middle and is claimed again; its row holds the progress
		a := h.waitImport(id)
		if a.Text("status") != "completed" || a.At("created") != float64(people) || a.At("done") != float64(people) || cut.opened < 2 {
			t.Errorf("opened %d times: %s", cut.opened, a.Bytes)
		}
		if all := h.do("GET", "/contacts?limit=1&include_total=true", nil).Want(200); all.At("total") != float64(people) {
			t.Errorf("%v contacts", all.At("total"))
		}
	})
}

// https://github.com/Mnexa-AI/e2a/issues/804
func TestImport_DamagedText(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	h.runJobs()
	for name, c := range map[string]struct{ file, names, errors string }{
		"CSV":                 {"name,title\nJörg Müller,x\nJ\xf6rg Other,y\nAda,\xff\nGrace,z\n", "Grace Jörg Müller", "3 name invalid_encoding, 4 title invalid_encoding"},
		"replaced before":     {"name,title\nJ\ufffdrg,x\nZoë,y\n", "Zoë", "2 name invalid_encoding"},
		"Windows-1252":        {"name,title\nJ\xf6rg,x\nAda \x81,y\n", "Jörg", "3 name invalid_encoding"},
		"UTF-16":              {"\xff\xfen\x00a\x00m\x00e\x00\n\x00A\x00\x00\xd8\n\x00Z\x00\n\x00", "Z", "2 name invalid_encoding"},
		"column not imported": {"name,fax\nAda,\xff\nZoë,\n", "Ada Zoë", ""},
		"vCard":               {"BEGIN:VCARD\nFN:Zoë\nEND:VCARD\nBEGIN:VCARD\nFN:J\xf6rg\nORG:\xff\nEND:VCARD\nBEGIN:VCARD\nFN:Ada\nROLE:\xff\nEND:VCARD\n", "Ada Zoë", "4 FN invalid_encoding, 4 ORG invalid_encoding"},
		"vCard 2.1": {"BEGIN:VCARD\nFN;CHARSET=ISO-8859-1;ENCODING=QUOTED-PRINTABLE:J=F6rg\nEND:VCARD\n" +
			"BEGIN:VCARD\nFN;CHARSET=KOI8-R;QUOTED-PRINTABLE:=E1=CE=CE=C1\nEND:VCARD\n" +
			"BEGIN:VCARD\nFN;QUOTED-PRINTABLE:J=F6rg\nEND:VCARD\n" +
			"BEGIN:VCARD\nFN;CHARSET=X-NONE;ENCODING=QUOTED-PRINTABLE:a\nEND:VCARD\n", "Jörg Анна", "7 FN invalid_encoding, 10 FN invalid_encoding"},
	} {
		before := h.do("GET", "/contacts?limit=200", nil).Want(200)
		known := map[string]bool{}
		for i := 0; before.Has(fmt.Sprint("data.", i), "id"); i++ {
			known[before.Text(fmt.Sprint("data.", i, ".id"))] = true
		}
		a := h.waitImport(h.upload(c.file, "duplicates=create").Want(202).Text("id"))
		var names, wrong []string
		after := h.do("GET", "/contacts?limit=200", nil).Want(200)
		for i := 0; after.Has(fmt.Sprint("data.", i), "id"); i++ {
			if !known[after.Text(fmt.Sprint("data.", i, ".id"))] {
				names = append(names, after.Text(fmt.Sprint("data.", i, ".name")))
			}
		}
		for i := 0; a.Has(fmt.Sprint("errors.", i), "line"); i++ {
			e := fmt.Sprint("errors.", i, ".")
			wrong = append(wrong, fmt.Sprint(a.At(e+"line"), " ", a.Text(e+"field"), " ", a.Text(e+"code")))
		}
		slices.Sort(names)
		if got := strings.Join(names, " "); got != c.names || strings.Join(wrong, ", ") != c.errors {
			t.Errorf("%s: %q, %q; want %q, %q", name, got, wrong, c.names, c.errors)
		}
	}
	h.upload("name,\xff,Zoë\nAda,x,y\n").Want(422).Refused("validation_failed", "file unreadable")
}
