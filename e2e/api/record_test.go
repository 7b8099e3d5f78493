package api_test

import (
	"bytes"
	"testing"
)

// records reads every record that can be changed, and changes it from current and outdated versions.
func records(t *testing.T, s *stage) {
	n := 0
	for _, o := range s.doc.operations {
		if o.Method != "GET" || o.declared.Parameters.GetByInAndName("header", "If-None-Match") == nil {
			continue
		}
		values, ok := s.of(o)
		if !ok && len(o.Parameters) > 0 {
			t.Errorf("%s: the stage has none to ask for", o.ID)
			continue
		}
		n++
		path := o.at(values)
		r := s.a.want(t, 200, "GET", path, nil, nil)
		tag := r.Header.Get("ETag")
		if tag == "" {
			t.Errorf("%s has no ETag", o.ID)
			continue
		}
		if again := s.a.want(t, 304, "GET", path, nil, nil, "If-None-Match", `"other", W/`+tag); len(again.Body) != 0 || again.Header.Get("ETag") != tag {
			t.Errorf("%s: 304 with ETag %q and %q", o.ID, again.Header.Get("ETag"), again.Body)
		}
		s.a.want(t, 200, "GET", path, nil, nil, "If-None-Match", `"other"`)
		s.conflicts(t, o, path)
		if now := s.a.want(t, 200, "GET", path, nil, nil); now.Header.Get("ETag") != tag {
			t.Errorf("%s: refused changes made version %s of %s: %s, then %s", o.ID, now.Header.Get("ETag"), tag, r.Body, now.Body)
		}
	}
	if n < 8 {
		t.Errorf("only %d records seen", n)
	}
	s.born(t)
}

// conflicts changes a record from a version it never had.
func (s *stage) conflicts(t *testing.T, record operation, path string) {
	for _, o := range s.doc.operations {
		if o.Path != record.Path || o.Method == "GET" || o.Method == "POST" {
			continue
		}
		if o.declared.Parameters.GetByInAndName("header", "If-Match") == nil {
			t.Errorf("%s does not announce If-Match", o.ID)
		}
		var body any
		if o.Body {
			body = map[string]any{}
			if b, ok := bodies[o.ID]; ok {
				body = b
			}
		}
		s.a.refused(t, 412, "version_conflict", o.Method, path, body, "If-Match", `"never"`)
		s.a.refused(t, 412, "version_conflict", o.Method, path, body, "If-Match", `"never", "also never"`)
	}
}

// born creates records: a read returns their first version, and a change from that version succeeds.
func (s *stage) born(t *testing.T) {
	d := s.org(t, "live")
	for _, c := range []struct {
		path         string
		body, change map[string]any
	}{
		{"/users", map[string]any{"email": "tag@example.org", "first_name": "Tag"}, map[string]any{"last_name": "Changed"}},
		{"/webhooks", map[string]any{"url": "http://127.0.0.1:9/", "events": []string{"call.missed"}}, map[string]any{"description": "Changed"}},
		{"/trunks", map[string]any{"name": "T", "host": "192.0.2.55"}, map[string]any{"name": "Changed"}},
		{"/tags", map[string]any{"name": "first"}, map[string]any{"name": "changed"}},
	} {
		var made struct{ ID string }
		first := d.want(t, 201, "POST", c.path, c.body, &made).Header.Get("ETag")
		path := c.path + "/" + made.ID
		changed := d.want(t, 200, "PATCH", path, c.change, nil, "If-Match", first).Header.Get("ETag")
		if first == "" || changed == "" || changed == first {
			t.Errorf("%s: made as version %q, changed to %q", c.path, first, changed)
		}
		d.refused(t, 412, "version_conflict", "PATCH", path, c.change, "If-Match", first)
		d.refused(t, 412, "version_conflict", "DELETE", path, nil, "If-Match", first)
		d.want(t, 204, "DELETE", path, nil, nil, "If-Match", `"x", `+changed)
	}
	before := d.want(t, 200, "GET", "/organization", nil, nil)
	d.refused(t, 412, "version_conflict", "PATCH", "/organization", map[string]any{"name": "X"}, "If-Match", `"x"`)
	if after := d.want(t, 200, "GET", "/organization", nil, nil); !bytes.Equal(before.Body, after.Body) {
		t.Errorf("a refused change changed %s to %s", before.Body, after.Body)
	}
}
