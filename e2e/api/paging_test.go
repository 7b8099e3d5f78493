package api_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"testing"
)

// page is a page of a list.
type page struct {
	Data       []map[string]any `json:"data"`
	NextCursor *string          `json:"next_cursor"`
	HasMore    bool             `json:"has_more"`
	Total      *int             `json:"total"`
}

// paging reads lists page by page.
func paging(t *testing.T, s *stage) {
	d := s.org(t, "live")
	for i := range 7 {
		s.person(t, d, fmt.Sprintf("p%d@example.org", i))
	}
	t.Run("pages are stable while records are added", func(t *testing.T) { stable(t, s, d) })
	t.Run("a cursor cannot be made up", func(t *testing.T) { tampered(t, s, d) })
	t.Run("only the members asked for", func(t *testing.T) { sparse(t, d) })
	t.Run("the total is told when asked for", func(t *testing.T) {
		var p page
		if d.want(t, 200, "GET", "/users?limit=2&include_total=true", nil, &p); p.Total == nil || *p.Total < 7 || len(p.Data) != 2 {
			t.Errorf("total %v with %d records", p.Total, len(p.Data))
		}
		var q page
		if d.want(t, 200, "GET", "/users?limit=2", nil, &q); q.Total != nil {
			t.Errorf("total %d though nobody asked", *q.Total)
		}
	})
	t.Run("every list ends", func(t *testing.T) { ends(t, s) })
}

func (s *stage) person(t *testing.T, d desk, email string) {
	t.Helper()
	d.want(t, 201, "POST", "/users", map[string]any{"email": email, "first_name": "P", "provision_sip": false}, nil)
}

// stable reads page by page and adds a record between them: each old record comes exactly once.
func stable(t *testing.T, s *stage, d desk) {
	var before page
	d.want(t, 200, "GET", "/users?limit=200", nil, &before)
	seen := map[string]int{}
	cursor := ""
	for n := 0; ; n++ {
		var p page
		d.want(t, 200, "GET", "/users?limit=2&cursor="+url.QueryEscape(cursor), nil, &p)
		for _, u := range p.Data {
			seen[u["id"].(string)]++
		}
		if len(p.Data) > 2 || p.HasMore != (p.NextCursor != nil) || p.HasMore && len(p.Data) != 2 {
			t.Fatalf("page of %d with has_more %v and next_cursor %v", len(p.Data), p.HasMore, p.NextCursor)
		}
		if !p.HasMore || n > 50 {
			break
		}
		cursor = *p.NextCursor
		if n < 3 {
			s.person(t, d, fmt.Sprintf("between%d@example.org", n))
		}
	}
	for _, u := range before.Data {
		if n := seen[u["id"].(string)]; n != 1 {
			t.Errorf("user %s came %d times", u["email"], n)
		}
	}
}

// tampered changes each character of a cursor in turn, and uses a cursor with other lists, orders and organisations.
func tampered(t *testing.T, s *stage, d desk) {
	var p page
	d.want(t, 200, "GET", "/users?limit=1", nil, &p)
	cursor := *p.NextCursor
	for i := range cursor {
		other := byte('A')
		if cursor[i] == 'A' {
			other = 'B'
		}
		bad := cursor[:i] + string(other) + cursor[i+1:]
		if i == len(cursor)-1 { // its last bits may be padding
			continue
		}
		d.refused(t, 400, "invalid_cursor", "GET", "/users?cursor="+bad, nil)
	}
	d.refused(t, 400, "invalid_cursor", "GET", "/calls?cursor="+cursor, nil)
	s.a.refused(t, 400, "invalid_cursor", "GET", "/users?cursor="+cursor, nil) // of another organisation
}

// sparse requests a few members of each record.
func sparse(t *testing.T, d desk) {
	for _, query := range []string{"fields=email,name", "fields=email&fields=name"} {
		var p page
		r := d.want(t, 200, "GET", "/users?limit=3&"+query, nil, &p)
		if len(p.Data) != 3 {
			t.Fatalf("%d records: %s", len(p.Data), r.Body)
		}
		for _, u := range p.Data {
			if len(u) != 3 || u["id"] == nil || u["email"] == nil || u["name"] == nil {
				t.Errorf("%s shows %v", query, u)
			}
		}
		if !json.Valid(r.Body) {
			t.Errorf("not JSON: %s", r.Body)
		}
	}
}

// ends reads every list of organisation a one record at a time, in every order it offers.
func ends(t *testing.T, s *stage) {
	for _, o := range s.doc.operations {
		if o.Method != "GET" || o.declared.Parameters.GetByInAndName("query", "cursor") == nil {
			continue
		}
		values, _ := s.of(o)
		orders := []string{""}
		if p := o.declared.Parameters.GetByInAndName("query", "sort"); p != nil {
			for _, v := range p.Schema.Value.Enum {
				orders = append(orders, v.(string))
			}
		}
		for _, order := range orders {
			query := url.Values{"limit": {"1"}}
			if order != "" {
				query.Set("sort", order)
			}
			whole := page{}
			s.a.want(t, 200, "GET", o.at(values), nil, &whole)
			if n := walk(t, s, o.at(values), query); n != len(whole.Data) && !whole.HasMore {
				t.Errorf("%s sorted by %q: %d records one by one, %d at once", o.ID, order, n, len(whole.Data))
			}
		}
	}
}

func walk(t *testing.T, s *stage, path string, query url.Values) (n int) {
	t.Helper()
	for range 300 {
		var p page
		s.a.want(t, 200, "GET", path+"?"+query.Encode(), nil, &p)
		n += len(p.Data)
		if !p.HasMore {
			return n
		}
		query.Set("cursor", *p.NextCursor)
	}
	t.Errorf("%s does not end", path)
	return n
}
