package number_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/op/optest"
)

// postCSV imports a CSV file.
func (h *fixture) postCSV(query, file string) *optest.Answer {
	return h.do("POST", "/numbers/imports"+query, file, "Content-Type: text/csv")
}

// countNumbers returns how many numbers the organisation has.
func (h *fixture) countNumbers(t *testing.T) (n int) {
	t.Helper()
	row := h.db.Read(context.Background()).QueryRow(context.Background(), `SELECT COUNT(*) FROM numbers WHERE org_id = $1`, h.org)
	if err := row.Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestImport_CSV(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		ext := h.do("GET", "/users/"+h.ada, nil).Want(200).Text("extension")
		file := "\ufeffNumber;Label;user;sms_enabled\n020 7946 0100;Front desk;" + ext + ";TRUE\n+442079460101;;ADA@example.com;\n+442079460102;;" + h.ada + ";0\n+442079460103;;;\n"
		dry := h.postCSV("?dry_run=true&trunk_id="+h.trunk, file).Want(200)
		if dry.At("count") != 4.0 || dry.At("numbers.0.id") != nil || dry.Text("numbers.0.locality") != "London" || h.countNumbers(t) != 0 {
			t.Fatalf("a dry run: %s; %d numbers", dry.Bytes, h.countNumbers(t))
		}
		a := h.postCSV("?trunk_id="+h.trunk, file).Want(201)
		n := h.do("GET", "/numbers/"+a.Text("numbers.0.id"), nil).Want(200)
		if n.Text("number") != "+442079460100" || n.Text("label") != "Front desk" || n.Text("assigned_to.id") != h.ada || n.At("sms_enabled") != true || n.Text("trunk_id") != h.trunk {
			t.Errorf("the first: %s", n.Bytes)
		}
		for i, want := range []string{h.ada, h.ada, h.ada, ""} {
			e164 := fmt.Sprintf("+44207946010%d", i)
			if got := h.assignedTo(t, e164, h.trunk); got != want {
				t.Errorf("%s rings %q, want %q", e164, got, want)
			}
			if told := h.allocated(t, e164); told != 1 {
				t.Errorf("%s was told %d times", e164, told)
			}
		}
		h.postCSV("?trunk_id="+h.trunk, file).Want(422).Refused("validation_failed", "lines[2].number number_unavailable", "lines[3].number number_unavailable",
			"lines[4].number number_unavailable", "lines[5].number number_unavailable")
	})
}

func TestImport_AllViolationsReported(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		other, _ := h.orgs.Create(context.Background(), "Other", "GB")
		theirs := h.server.Do(optest.Admin(other.ID), "POST", "/trunks", `{"name":"carrier","host":"192.0.2.2"}`).Want(201).Text("id")
		h.add("+442079460018", "").Want(201)
		file := "number,trunk_id,user,sms_enabled,label\n" +
			"x," + h.trunk + ",,,\n" +
			"+442079460100,,,,\n" +
			"+442079460101," + theirs + ",999,maybe,\n" +
			"+442079460102," + h.trunk + ",,," + strings.Repeat("a", 121) + "\n" +
			"020 7946 0102," + h.trunk + ",,,\n" +
			"+442079460018," + h.trunk + ",,,\n" +
			"+442079460103," + h.trunk + ",,,\n"
		h.postCSV("", file).Want(422).Refused("validation_failed", "lines[4].sms_enabled invalid_value", "lines[4].user not_found", "lines[2].number invalid_e164",
			"lines[3].trunk_id required", "lines[4].trunk_id not_found", "lines[5].label invalid_length", "lines[6].number duplicate", "lines[7].number number_unavailable")
		if n := h.countNumbers(t); n != 1 {
			t.Errorf("%d numbers, want the one that was there", n)
		}
		h.postCSV("", "number,colour,number\n").Want(422).Refused("validation_failed", "lines[1].colour unknown_field", "lines[1].number duplicate")
		h.postCSV("", "label\nx\n").Want(422).Refused("validation_failed", "lines[1].number required", "lines[2].number invalid_e164", "lines[2].trunk_id required")
		h.postCSV("", "\n").Want(422).Refused("validation_failed", "body unreadable")
		h.postCSV("", "number\n").Want(422).Refused("validation_failed", "body required")
		h.postCSV("", "number\n\xff\n").Want(422).Refused("validation_failed", "body unreadable")
		h.do("POST", "/numbers/imports", `x`, "Content-Type: application/xml").Want(415).Refused("unsupported_media_type")
	})
}

func TestImport_Range(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		bad := func(body string, wrong ...string) {
			t.Helper()
			h.do("POST", "/numbers/imports", body).Want(422).Refused("validation_failed", wrong...)
		}
		bad(`{}`, "numbers required")
		bad(`{"numbers":["+442079460018"],"range":{"from":"+442079460018","to":"+442079460018"}}`, "range ambiguous", "trunk_id required")
		bad(fmt.Sprintf(`{"range":{"from":"+442079460199","to":"+442079460100"},"trunk_id":%q}`, h.trunk), "range out_of_range")
		bad(`{"numbers":["+442079460018","+44"]}`, "trunk_id required", "numbers[1] invalid_e164")
		bad(`{"numbers":7}`, "numbers invalid_type")
		bad(`[]`, "body invalid_type")
		h.do("POST", "/numbers/imports", `{"colour":1}`).Want(400).Refused("unknown_field", "colour unknown_field")
		h.do("POST", "/numbers/imports", `{"numbers":[],"Numbers":["+442079460018"]}`).Want(400).Refused("unknown_field", "Numbers unknown_field")
		h.do("POST", "/numbers/imports", `{"numbers":[],"numbers":["+442079460018"]}`).Want(400).Refused("malformed_json", "numbers repeated")
		h.do("POST", "/numbers/imports", `{`).Want(400).Refused("malformed_json")
		a := h.do("POST", "/numbers/imports", fmt.Sprintf(`{"range":{"from":"020 7946 0100","to":"+442079460199"},"trunk_id":%q,"user_id":%q}`, h.trunk, h.ada)).Want(201)
		if a.At("count") != 100.0 || a.Text("numbers.99.number") != "+442079460199" || h.countNumbers(t) != 100 {
			t.Errorf("added %d: %.200s", h.countNumbers(t), a.Bytes)
		}
		if got := h.assignedTo(t, "+442079460150", h.trunk); got != h.ada {
			t.Errorf("rings %q", got)
		}
	})
}

func TestImport_TenThousandNumbers(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		began := time.Now()
		a := h.do("POST", "/numbers/imports", fmt.Sprintf(`{"range":{"from":"+442079470000","to":"+442079479999"},"trunk_id":%q}`, h.trunk)).Want(201)
		if a.At("count") != 10000.0 || h.countNumbers(t) != 10000 {
			t.Errorf("%d numbers", h.countNumbers(t))
		}
		t.Logf("took %s", time.Since(began))
		h.do("POST", "/numbers/imports", fmt.Sprintf(`{"range":{"from":"+442079480000","to":"+442079490000"},"trunk_id":%q}`, h.trunk)).Want(422).Refused("validation_failed", "range out_of_range")
	})
}
