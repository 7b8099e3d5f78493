package db

import (
	"fmt"
	"testing"
)

func TestPositional_Placeholders(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		"a = $1 AND b = $2":                       "a = ? AND b = ? []",
		"VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10)": "VALUES (?,?,?,?,?,?,?,?,?,?) []",
		"a = $2 AND b = $1":                       "a = ? AND b = ? [1 0]",
		"a = $1 OR b = $1":                        "a = ? OR b = ? [0 0]",
		"a = '$5' AND b = $1":                     "a = '$5' AND b = ? []",
		"a = 'it''s $2' AND b = $1":               "a = 'it''s $2' AND b = ? []",
		"a = $1 AND b = $10":                      "a = ? AND b = ? [0 9]",
		"a = $name AND b = $1":                    "a = $name AND b = $1 []",
		"SELECT 1":                                "SELECT 1 []",
	} {
		text, order := positional(query)
		if got := fmt.Sprint(text, " ", order); got != want {
			t.Errorf("%s became %s, want %s", query, got, want)
		}
	}
}
