package db

import (
	"context"
	"fmt"
)

// Reading all rows of a query.

// ForEach runs a query and calls row for each of its rows, in their order. doing says in errors what the query is for, such as "list
// flows".
func ForEach(ctx context.Context, q Querier, doing, query string, args []any, row func(scan func(...any) error) error) error {
	found, err := q.Query(ctx, query, args...)
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	defer found.Close()
	for found.Next() {
		if err := row(found.Scan); err != nil {
			return fmt.Errorf("%s: %w", doing, err)
		}
	}
	return found.Err()
}

// Strings returns the values of a query with one column of texts; nil if it finds none. doing is that of ForEach.
func Strings(ctx context.Context, q Querier, doing, query string, args ...any) (all []string, err error) {
	err = ForEach(ctx, q, doing, query, args, func(scan func(...any) error) error {
		var s string
		if err := scan(&s); err != nil {
			return err
		}
		all = append(all, s)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}
