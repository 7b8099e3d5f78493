package db

import (
	"strconv"
	"strings"
)

// maxBulk is the largest number of rows in one statement.
const maxBulk = 32

// Bulk splits n rows into statements of 32, 16, … 1 rows, so that only six different texts are prepared. do gets
// the half-open range [from, to) of rows.
func Bulk(n int, do func(from, to int) error) error {
	for from, size := 0, maxBulk; from < n; {
		for size > n-from {
			size /= 2
		}
		if err := do(from, from+size); err != nil {
			return err
		}
		from += size
	}
	return nil
}

// Values returns the placeholders of rows: ($1, $2), ($3, $4) …, starting with $first. columns holds for each
// column the type that its values are cast to, such as BIGINT, because PostgreSQL treats bare parameters as text. An
// empty type means no cast.
func Values(first, rows int, columns ...string) string {
	var b strings.Builder
	for i := range rows {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteByte('(')
		for j, kind := range columns {
			if j > 0 {
				b.WriteString(", ")
			}
			place := "$" + strconv.Itoa(first)
			if kind != "" {
				place = "CAST(" + place + " AS " + kind + ")"
			}
			b.WriteString(place)
			first++
		}
		b.WriteByte(')')
	}
	return b.String()
}
