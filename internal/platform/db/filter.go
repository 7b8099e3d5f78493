package db

import (
	"context"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// Filter builds the WHERE clause of a list from external values. Column names come from the code. Values are always
// passed as arguments.
type Filter struct {
	text strings.Builder
	args []any
}

// Where returns a filter for a statement that ends with its first condition, such as "SELECT … FROM calls WHERE
// org_id = $1".
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

// And adds a condition. Each ? in it is replaced by the placeholder of the next value.
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

// Equal adds column = value. An empty value adds nothing.
func (f *Filter) Equal(column, value string) *Filter {
	if value == "" {
		return f
	}
	return f.And(column+" = ?", value)
}

// In adds column IN (values). An empty list adds nothing. The last value is repeated up to a power of two, so that
// few different statements are prepared.
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

// Between adds since <= column < until. Zero times are left out.
func (f *Filter) Between(column string, since, until Time) *Filter {
	if !since.IsZero() {
		f.And(column+" >= ?", since)
	}
	if !until.IsZero() {
		f.And(column+" < ?", until)
	}
	return f
}

// Page orders by (column, id) and starts after the given position. An empty id starts at the beginning. It selects
// one row more than limit, which shows whether there are more.
func (f *Filter) Page(column string, descending bool, after any, id string, limit int) *Filter {
	op, dir := ">", "ASC"
	if descending {
		op, dir = "<", "DESC"
	}
	if id != "" {
		f.And("("+column+", id) "+op+" (?, ?)", after, id)
	}
	f.text.WriteString(" ORDER BY " + column + " " + dir + ", id " + dir + " LIMIT " + f.limitText(limit+1))
	return f
}

// limitText returns a row limit. Usual limits are literals, because SQLite prepares a statement again whenever
// another argument is bound to its LIMIT.
func (f *Filter) limitText(n int) string {
	if slices.Contains(usualLimits, n) {
		return strconv.Itoa(n)
	}
	return f.Arg(n)
}

// usualLimits are the default limits of lists, plus the one extra row. There are few, because each one is a statement
// of its own.
var usualLimits = []int{21, 51, 101, 201, 5000}

// Count returns the number of matching rows. It has to be called before Page.
func (f *Filter) Count(ctx context.Context, q Querier) (int, error) {
	var n int
	err := q.QueryRow(ctx, "SELECT COUNT(*) FROM ("+f.text.String()+") AS matching", f.args...).Scan(&n)
	return n, err
}

// SQL returns the statement and its arguments.
func (f *Filter) SQL() (string, []any) { return f.text.String(), f.args }

// Escape escapes text for LIKE with ESCAPE '\'.
func Escape(text string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(text)
}
