package db

import (
	"context"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// A Filter builds the WHERE part of a list from values that come from outside. Columns come from the
// code; values only ever become arguments.
type Filter struct {
	text strings.Builder
	args []any
}

// Where starts a filter from a complete statement that ends in its first condition, such as
// "SELECT … FROM calls WHERE org_id = $1".
func Where(statement string, args ...any) *Filter {
	f := &Filter{args: args}
	f.text.WriteString(statement)
	return f
}

// Arg adds a value and returns its placeholder.
func (f *Filter) Arg(v any) string {
	f.args = append(f.args, v)
	return "$" + strconv.Itoa(len(f.args))
}

// And adds a condition; each ? in it stands for the next value.
func (f *Filter) And(condition string, values ...any) *Filter {
	f.text.WriteString(" AND (")
	for _, v := range values {
		before, after, _ := strings.Cut(condition, "?")
		f.text.WriteString(before + f.Arg(v))
		condition = after
	}
	f.text.WriteString(condition + ")")
	return f
}

// Equal adds column = value unless the value is "".
func (f *Filter) Equal(column, value string) *Filter {
	if value == "" {
		return f
	}
	return f.And(column+" = ?", value)
}

// In adds column IN (values) unless there are none. The last value is repeated until their number is a power of two: statements are
// kept prepared, and so there are few of them.
func (f *Filter) In(column string, values []string) *Filter {
	if len(values) == 0 {
		return f
	}
	marks := make([]string, 1<<bits.Len(uint(len(values)-1)))
	for i := range marks {
		marks[i] = f.Arg(values[min(i, len(values)-1)])
	}
	f.text.WriteString(" AND " + column + " IN (" + strings.Join(marks, ", ") + ")")
	return f
}

// Between adds since <= column < until, leaving out zero times.
func (f *Filter) Between(column string, since, until Time) *Filter {
	if !since.IsZero() {
		f.And(column+" >= ?", since)
	}
	if !until.IsZero() {
		f.And(column+" < ?", until)
	}
	return f
}

// Page orders by (column, id) and starts after the given position; a zero id starts at the beginning.
// It asks for one row more than limit, so that the caller sees whether there are more.
func (f *Filter) Page(column string, descending bool, after any, id string, limit int) *Filter {
	op, dir := ">", "ASC"
	if descending {
		op, dir = "<", "DESC"
	}
	if id != "" {
		f.And("("+column+", id) "+op+" (?, ?)", after, id)
	}
	f.text.WriteString(" ORDER BY " + column + " " + dir + ", id " + dir + " LIMIT " + f.most(limit+1))
	return f
}

// most is a number of rows. The usual ones stand in the text: SQLite prepares a statement again whenever another argument is bound to its LIMIT.
func (f *Filter) most(n int) string {
	if slices.Contains(usual, n) {
		return strconv.Itoa(n)
	}
	return f.Arg(n)
}

// usual are the numbers of rows that lists are asked for when nobody says otherwise, with the one that tells whether there are more; few, for
// each makes a statement of its own.
var usual = []int{21, 51, 101, 201, 5000}

// Count returns how many rows match; ask before Page.
func (f *Filter) Count(ctx context.Context, q Querier) (int, error) {
	var n int
	err := q.QueryRow(ctx, "SELECT COUNT(*) FROM ("+f.text.String()+") AS matching", f.args...).Scan(&n)
	return n, err
}

// SQL returns the statement and its arguments.
func (f *Filter) SQL() (string, []any) { return f.text.String(), f.args }

// Escape makes text safe inside LIKE with ESCAPE '\'.
func Escape(text string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(text)
}
