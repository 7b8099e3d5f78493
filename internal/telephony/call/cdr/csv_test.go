package cdr_test

import (
	"encoding/csv"
	"slices"
	"strings"
	"testing"

	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/op/optest"
)

func TestCDRList_CSVHasAllMatches(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		o := newCDROrg(t, d)
		o.InsertEndedCalls(1203)
		table := func(p, query string) [][]string {
			a := o.API.Do(optest.Admin(p), "GET", "/cdr"+query, nil, "Accept: text/csv").Want(200)
			if kind := a.Header.Get("Content-Type"); kind != "text/csv; charset=utf-8" {
				t.Errorf("it is of type %s", kind)
			}
			rows, err := csv.NewReader(strings.NewReader(string(a.Bytes))).ReadAll()
			if err != nil {
				t.Fatal(err)
			}
			return rows
		}
		rows := table(o.ID, "")
		from := slices.Index(rows[0], "from_number")
		if len(rows) != 1204 || rows[1][from] != "+12025551202" || rows[1203][from] != "+12025550000" {
			t.Fatalf("%d rows, the first is %v", len(rows), rows[1])
		}
		seen := map[string]bool{}
		for _, r := range rows[1:] {
			seen[r[0]] = true
		}
		if len(seen) != 1203 {
			t.Errorf("%d different records", len(seen))
		}
		rows = table(o.ID, "?from_number=%2B12025550007&fields=call_id,from_number,from_name&limit=1")
		if len(rows) != 2 || strings.Join(rows[0], ",") != "call_id,from_number,from_name" || rows[1][1] != "+12025550007" || rows[1][2] != "'=1+1" {
			t.Errorf("of one number: %v", rows)
		}
		if rows := table("org_stranger", ""); len(rows) != 1 {
			t.Errorf("a stranger sees %d records", len(rows)-1)
		}
		o.API.Do(optest.Admin(o.ID), "GET", "/cdr?cursor=nonsense", nil, "Accept: text/csv").Want(400).Refused("invalid_cursor")
		o.API.Do(optest.Admin(o.ID), "GET", "/cdr?fields=call_id,secret", nil, "Accept: text/csv").Want(400).Refused("invalid_query")
		o.Do("GET", "/cdr?fields=call_id,secret", nil).Want(400).Refused("invalid_query")
		if a := o.Do("GET", "/cdr?limit=2", nil).Want(200); a.At("has_more") != true || !strings.HasPrefix(a.Header.Get("Content-Type"), "application/json") {
			t.Errorf("without asking for a table: %s", a.Bytes)
		}
	})
}
