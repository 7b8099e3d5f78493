package crm

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

// table returns people as CSV.
func table(people []rig.Person) string {
	var b strings.Builder
	b.WriteString("id,name,company,email,phone\n")
	for _, p := range people {
		fmt.Fprintf(&b, "%s,%s,%s,%s,%q\n", p.ID, p.Name, p.Company, p.Email, p.Phones[0])
	}
	return b.String()
}

// imports uploads a table and waits until it is imported.
func (c company) imports(people []rig.Person) {
	c.T.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	file, _ := form.CreateFormFile("file", "people.csv")
	_, _ = file.Write([]byte(table(people)))
	_ = form.Close()
	r := c.Do("POST", "/crm/imports", body.Bytes(), "Content-Type", form.FormDataContentType())
	if r.Status != 202 {
		c.T.Fatalf("import: %d %s", r.Status, r.Body)
	}
	var x struct {
		ID, Status      string
		Created, Failed int
	}
	decode(c.T, r.Body, &x)
	rig.Until(c.T, "the import", 2*time.Minute, func() bool {
		c.Want(200, "GET", "/crm/imports/"+x.ID, nil, &x)
		return x.Status == "completed" || x.Status == "failed"
	})
	if x.Created != len(people) || x.Failed != 0 {
		c.T.Fatalf("imported %+v", x)
	}
}

// Each of ten thousand people, with numbers in five formats, is found in every source: imported, a table, an address
// book, a copied directory and a queried directory.
func TestLookup_TenThousandInFiveSources(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 75*time.Second, "ten thousand lookups")
	const each = 2000
	s := rig.Shared(t, rig.Options{Load: rig.All, Env: quiet})
	c := newCompany(s)
	in := map[string][]rig.Person{}
	for _, x := range [][2]string{{"7941", "Contacts"}, {"7942", "Table"}, {"7943", "Book"}, {"7944", "Copied"}, {"7945", "Asked"}} {
		in[x[1]] = crowd(x[0], strings.ToLower(x[1]), each)
	}
	c.imports(in["Contacts"])
	list := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(table(in["Table"])))
	}))
	defer list.Close()
	copied, asked := rig.StartSlapd(t, in["Copied"]), rig.StartSlapd(t, in["Asked"])
	began := time.Now()
	ids := []string{c.connect("csv", "Table", map[string]any{"url": list.URL}), c.connect("carddav", "Book", book(rig.StartRadicale(t, in["Book"]))),
		c.connect("ldap", "Copied", reading(copied, "mode", "copy"))}
	for _, id := range ids {
		c.copied(id, each)
	}
	t.Logf("three lists of %d copied in %s, radicale's beginning included", each, time.Since(began))
	for _, x := range [][2]string{{"7941", "Contacts"}, {"7942", "Table"}, {"7943", "Book"}, {"7944", "Copied"}, {"7945", "Asked"}} {
		exchange, source := x[0], x[1]
		if source == "Asked" { // last, because lookups in the other sources would query it too
			c.connect("ldap", source, reading(asked, "requests_per_minute", 60000))
		}
		t.Logf("%s: slowest of %d: %d ms", source, each, c.finds(exchange, source, in[source], 1))
		if w := c.ask("email", in[source][7].Email); w.Name != in[source][7].Name || w.Source != source {
			t.Errorf("by address in %s: %+v", source, w)
		}
	}
}

// A table whose server sends an ETag is read again only after it changed, and at once after a notice.
func TestTable_RereadOnChange(t *testing.T) {
	t.Parallel()
	var whole, same atomic.Int64
	var state atomic.Pointer[string]
	put := func(people []rig.Person) { text := table(people); state.Store(&text) }
	put(crowd("7946", "Ada", 20))
	list := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text := *state.Load()
		tag := fmt.Sprintf(`"%d"`, len(text))
		w.Header().Set("ETag", tag)
		if r.Header.Get("If-None-Match") == tag {
			same.Add(1)
			w.WriteHeader(304)
			return
		}
		whole.Add(1)
		_, _ = w.Write([]byte(text))
	}))
	defer list.Close()
	c := newCompany(rig.Shared(t, rig.Options{Env: quiet}))
	id := c.connect("csv", "Table", map[string]any{"url": list.URL})
	c.copied(id, 20)
	c.notice(id)
	rig.Until(t, "it to be asked", time.Minute, func() bool { return same.Load() == 1 })
	c.copied(id, 20)
	c.finds("7946", "Table", crowd("7946", "Ada", 20), 1)
	put(crowd("7946", "Ada", 21))
	c.notice(id)
	c.copied(id, 21)
	if whole.Load() != 2 {
		t.Errorf("read %d times", whole.Load())
	}
}
